# SPDX-License-Identifier: Apache-2.0
"""A small U-Net, for comparisons with PyTorch."""
import torch
from torch import nn


def block(channels, width):
    return nn.Sequential(nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                         nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())


class UNet(nn.Module):
    """Three levels; what goes down is concatenated to what comes up."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = block(3, 8), block(8, 16), block(16, 32)
        self.pool = nn.MaxPool2d(2)
        self.rise2, self.up2 = nn.ConvTranspose2d(32, 16, 2, stride=2), block(32, 16)
        self.rise1, self.up1 = nn.ConvTranspose2d(16, 8, 2, stride=2), block(16, 8)
        self.head = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(self.pool(one))
        up = self.up2(torch.cat([two, self.rise2(self.bottom(self.pool(two)))], 1))
        return self.head(self.up1(torch.cat([one, self.rise1(up)], 1)))

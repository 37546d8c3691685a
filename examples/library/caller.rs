// SPDX-License-Identifier: Apache-2.0
//
// Trains the model of docs/library.md from Rust, through its C interface:
//   rustc caller.rs -L out/library -l model_net
use std::ffi::{c_char, c_int, c_void, CStr, CString};

#[repr(C)]
struct Net {
    private: [u8; 0],
}

#[repr(C)]
#[derive(Default)]
struct NetResult {
    loss: f64,
    gradient_norm: f64,
    applied: c_int,
    step: i64,
}

extern "C" {
    fn model_net_create(options: *const c_void, instance: *mut *mut Net) -> c_int;
    fn model_net_destroy(instance: *mut Net);
    fn model_net_message(instance: *const Net) -> *const c_char;
    fn model_net_set(instance: *mut Net, name: *const c_char, value: f64) -> c_int;
    fn model_net_set_input(instance: *mut Net, name: *const c_char, from: *const c_void, bytes: i64) -> c_int;
    fn model_net_step(instance: *mut Net, result: *mut NetResult) -> c_int;
}

struct Model(*mut Net);

impl Model {
    fn new() -> Result<Model, String> {
        let mut model = Model(std::ptr::null_mut());
        let status = unsafe { model_net_create(std::ptr::null(), &mut model.0) };
        model.check(status)?;
        Ok(model)
    }
    fn check(&self, status: c_int) -> Result<(), String> {
        match status {
            0 => Ok(()),
            _ => Err(unsafe { CStr::from_ptr(model_net_message(self.0)) }.to_string_lossy().into_owned()),
        }
    }
    fn set(&mut self, name: &str, value: f64) -> Result<(), String> {
        let name = CString::new(name).unwrap();
        self.check(unsafe { model_net_set(self.0, name.as_ptr(), value) })
    }
    fn set_input(&mut self, name: &str, values: &[f32]) -> Result<(), String> {
        let name = CString::new(name).unwrap();
        let bytes = std::mem::size_of_val(values) as i64;
        self.check(unsafe { model_net_set_input(self.0, name.as_ptr(), values.as_ptr().cast(), bytes) })
    }
    fn step(&mut self) -> Result<NetResult, String> {
        let mut result = NetResult::default();
        let status = unsafe { model_net_step(self.0, &mut result) };
        self.check(status)?;
        Ok(result)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { model_net_destroy(self.0) }
    }
}

fn main() -> Result<(), String> {
    let mut model = Model::new()?;
    model.set("learning_rate", 0.01)?;
    for step in 0..100 {
        let x: Vec<f32> = (0..8 * 12).map(|i| ((i * 7 + step) % 11) as f32 / 11.0).collect();
        let labels: Vec<f32> = x[..8 * 7].iter().map(|value| f32::from(*value > 0.5)).collect();
        model.set_input("x", &x)?;
        model.set_input("labels", &labels)?;
        let result = model.step()?;
        if step % 50 == 0 {
            println!("step {}: loss {:.5}", step, result.loss);
        }
    }
    Ok(())
}

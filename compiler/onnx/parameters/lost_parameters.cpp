// SPDX-License-Identifier: Apache-2.0
//
// Problem: of norm_a(x) and norm_b(x), both fresh, the default exporter's optimizer leaves one
// node, with the call of norm_a. Products with 1 and sums with 0 it takes out. The file does not
// say which parameter the missing operation used.
//
// Method: a call still names the values that it used. If no node makes such a value, an operation
// is gone, and the call reads another value in its place. Compare the two. If both come from one
// kind of operation, they were merged. Else the missing operation was a user of the value that is
// left: the record says how many users that had, and if there are more now, calls were merged. Then
// go on to the calls that a merged call reads, in the same way. A parameter that a merged call
// reads is undecided if another one has equal values. A parameter that no call names is unused,
// unless a missing calculation may have read it.
//
// Weakness: a user that left no trace (a size that was known) counts as the one looked for.
#include "compiler/onnx/parameters/recorded_calls.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

using Made = RecordedCalls::Made;
using Read = RecordedCalls::Read;

namespace {

/// What became of calls that are gone.
struct GoneCalls {
  llvm::StringSet<> merged; // calls that stand for another, equal one as well
  bool calculates = false;  // something that changed nothing: a product with 1, a sum with 0
  bool moves = false;       // a view, a cast, and perhaps such a calculation before it
};

class GoneCallFinder {
public:
  GoneCallFinder(const RecordedCalls &calls, const std::set<std::string> &resolved)
      : calls(calls), program(calls.program), resolved(resolved) {
    collect();
  }

  GoneCalls run() {
    for (const Made &made : calls.calls)
      lookAt(made);
    lookAtResults();
    for (const auto &[lost, maker] : stands)
      judge(lost, maker);
    return std::move(found);
  }

private:
  struct Users {
    const ProgramCall *call = nullptr;
    std::vector<std::string> reads; // values of other calls, inputs and initializers
    std::set<std::string> users;    // calls, and values that are gone
  };

  void collect() {
    const onnx::GraphProto &graph = calls.file.graph();
    for (const auto *values : {&graph.value_info(), &graph.input(), &graph.output()})
      for (const onnx::ValueInfoProto &value : *values)
        if (int type = value.type().tensor_type().elem_type(); type != 0 && !isFloat(type))
          integers.insert(value.name());
    for (const Made &made : calls.calls)
      for (const onnx::NodeProto *node : made.nodes)
        for (const std::string &output : node->output())
          makers[output] = made.call.name;
    for (const Made &made : calls.calls) {
      Users &one = byName[made.call.name];
      one.call = &made.call;
      for (const onnx::NodeProto *node : made.nodes)
        for (const std::string &input : node->input())
          if (!input.empty() && makers.lookup(input) != made.call.name)
            one.reads.push_back(input);
    }
    for (const Made &made : calls.calls)
      for (const std::string &reference : made.call.references) {
        const std::string maker = makers.lookup(reference);
        if (auto used = byName.find(maker.empty() ? reference : maker); used != byName.end())
          used->second.users.insert(made.call.name);
      }
  }

  bool isLost(const std::string &name) const { return calls.isLost(name) && !resolved.count(name); }

  /// The call that a value comes from, also through nodes without one (a split); "" for inputs.
  std::string makerOf(std::string value) const {
    for (size_t step = 0; step <= calls.passedOn.size(); ++step) {
      if (auto maker = makers.find(value); maker != makers.end())
        return maker->second;
      auto from = calls.passedOn.find(value);
      if (from == calls.passedOn.end())
        return "";
      value = from->second;
    }
    return "";
  }

  // Which values a call reads in the place of those that are gone.
  void lookAt(const Made &made) {
    const std::vector<std::string> &references = made.call.references;
    std::vector<std::string> lost, others, again;
    for (const std::string &reference : references)
      if (isLost(reference) && !isMadeBy(reference, kNumbers) && !is_contained(lost, reference))
        lost.push_back(reference);
    if (lost.empty())
      return;
    bool readsTable = false;
    std::vector<std::string> unread = references; // as each stands for one value of a single node
    for (const std::string &value : byName[made.call.name].reads) {
      if (auto read = llvm::find(unread, makers.lookup(value)); read != unread.end())
        unread.erase(read);
      else if (auto own = llvm::find(unread, value); own != unread.end())
        unread.erase(own);
      else if (made.nodes.size() == 1 && !calls.isInitializer(value))
        again.push_back(value);
      const bool isNamed =
          is_contained(references, value) || is_contained(references, makers.lookup(value));
      if (calls.isInitializer(value))
        readsTable |= calls.holdsFloats(value) && !calls.tensorOf(value).shape.empty() &&
                      !isNamed && !is_contained(program.parametersOf(made.call), value);
      else if (!isNamed && !is_contained(others, value))
        others.push_back(value);
    }
    if (others.empty() && readsTable) // what is gone became that initializer
      return;
    const std::vector<std::string> &read = others.empty() ? again : others;
    for (size_t i = 0; i < lost.size(); ++i)
      for (size_t j = 0; j < read.size(); ++j)
        if (i == j || lost.size() != read.size())
          addStand(made.call.name, lost[i], read[j]);
  }

  // A result keeps its name, by any node that is left to make it. A call with several has none of
  // its own.
  void lookAtResults() {
    const auto &outputs = calls.file.graph().output();
    if (static_cast<size_t>(outputs.size()) != program.outputs().size())
      return;
    for (int i = 0; i < outputs.size(); ++i) {
      const std::string &result = program.outputs()[i];
      const std::string maker = makers.lookup(result);
      const bool isOther = !maker.empty() && maker != result && !byName.count(result) &&
                           baseName(result) != "getitem" && baseName(result) != "val";
      if (isOther || isLost(result))
        addStand("", result, outputs[i].name());
    }
  }

  void addStand(const std::string &user, const std::string &lost, const std::string &value) {
    const std::string maker = makers.lookup(value);
    const bool isPart = calls.passedOn.count(value) > 0 || // one of several values of a split
                        baseName(value) == "val";          // or of the nodes of one call
    if (integers.contains(value) || isPart || (maker == user && !maker.empty()))
      return;
    if (auto call = byName.find(maker); call != byName.end())
      call->second.users.insert(lost);
    stands.emplace_back(lost, maker);
  }

  void judge(const std::string &lost, const std::string &maker) {
    if (auto call = byName.find(maker); call != byName.end()) {
      const std::optional<size_t> users = call->second.call->users;
      const bool isSameKind = baseName(lost) == baseName(maker) && !isMadeBy(lost, kMoves);
      if (isSameKind || (users && call->second.users.size() > *users))
        return follow(maker);
    }
    (isMadeBy(lost, kUsesNoParameter) ? found.moves : found.calculates) = true;
  }

  void follow(const std::string &first) {
    std::vector<std::string> left{first};
    while (!left.empty()) {
      std::string name = std::move(left.back());
      left.pop_back();
      if (!found.merged.insert(name).second)
        continue;
      for (const std::string &value : byName[name].reads)
        if (auto call = byName.find(makerOf(value)); call != byName.end())
          if (call->second.users.size() >= call->second.call->users.value_or(0))
            left.push_back(call->first);
    }
  }

  const RecordedCalls &calls;
  const ExportedProgram &program;
  const std::set<std::string> &resolved;
  std::map<std::string, Users> byName;
  StringMap<std::string> makers;                           // calls, by value
  llvm::StringSet<> integers;                              // values
  std::vector<std::pair<std::string, std::string>> stands; // a value that is gone, a call
  GoneCalls found;
};

class LossFinder {
public:
  LossFinder(const RecordedCalls &calls, Claims &claims)
      : calls(calls), program(calls.program), claims(claims), lost(claims.lost) {
    for (const Claim &claim : claims.uses) {
      claimed.insert(claim.tensors.begin(), claim.tensors.end());
      claimOf[{claim.node, claim.input}] = &claim;
      if (!claim.function.empty())
        resolved.insert(claim.function);
    }
  }

  void run() {
    const bool isWhole = program.isOfTrainc(); // nothing was merged or taken out
    bool anyMerged = false;
    GoneCalls gone;
    if (!isWhole) {
      findUnsaid();
      anyMerged = findMergedFunctions();
      gone = GoneCallFinder(calls, resolved).run();
      anyMerged |= findMergedCalls(gone.merged);
    }
    for (const std::string &parameter : program.parameters())
      if (!calls.held.count(parameter) && !claimed.count(parameter) &&
          !is_contained(lost.foldedNorms, parameter) && !is_contained(lost.changed, parameter))
        explain(parameter, gone.calculates || anyMerged, gone.moves);
  }

private:
  void explain(const std::string &parameter, bool mayBeGone, bool mayBeMoved) {
    if (calls.mentioned.count(parameter) && !program.isOfTrainc()) {
      lost.undecided.insert(parameter);
      return;
    }
    const std::string other = otherNameOf(parameter, mayBeGone);
    if (other.empty() && mayBeGone) {
      lost.unnamed.insert(parameter);
      return;
    }
    claims.absent.emplace_back(parameter, other);
    if (other.empty() && mayBeMoved)
      lost.unclear.insert(parameter);
  }

  // A node without a call may mean any of the parameters that shared its input.
  void findUnsaid() {
    std::map<std::string, std::vector<std::string>> taken; // parameters, by former initializer
    for (const Claim &claim : claims.uses)
      if (claim.form != Form::constant && claim.form != Form::statistic &&
          claim.form != Form::zeros && !calls.isOwn({claim.node, claim.input}, claim.tensors[0]))
        llvm::append_range(taken[claim.node->input(claim.input)], claim.tensors);
    for (const onnx::NodeProto *node : calls.callless)
      for (const std::string &input : node->input())
        if (auto found = taken.find(input); found != taken.end())
          lost.undecided.insert(found->second.begin(), found->second.end());
  }

  // The parameters that a use is of, as claims say.
  std::vector<std::string> ownersOf(const Read &use) const {
    auto claim = claimOf.find({use.node, use.input});
    return claim == claimOf.end() ? calls.originsOf(use.name()) : claim->second->tensors;
  }

  // Other parameters that have the same values as a use.
  std::vector<std::string> equalParameters(const Read &use, ArrayRef<std::string> owners) const {
    const ArrayRef<char> bytes = calls.tensorOf(use.name()).bytes;
    std::vector<std::string> equal;
    auto addFrom = [&](const std::string &name, const std::vector<std::string> &from) {
      if (from.size() == 1 && !is_contained(owners, from[0]) && !is_contained(equal, from[0]) &&
          calls.isInitializer(name) && calls.tensorOf(name).bytes == bytes)
        equal.push_back(from[0]);
    };
    for (const auto &[name, from] : calls.origins)
      addFrom(name, from);
    for (const Claim &claim : claims.uses)
      if (claim.form != Form::statistic && claim.form != Form::zeros)
        addFrom(claim.node->input(claim.input), claim.tensors);
    return equal;
  }

  // The initializer that a node reads, or that a node without a call (a split) passes on to it.
  std::string initializerAt(const std::string &value) const {
    if (calls.isInitializer(value))
      return value;
    auto from = calls.passedOn.find(value);
    return from != calls.passedOn.end() && calls.isInitializer(from->second) ? from->second : "";
  }

  // A call takes a value whose own call is gone, and its node reads a parameter instead, or what
  // was made of one, that the call does not name. The value may have been a function of another
  // parameter that was equal: nothing tells, so that nobody may train the two as one.
  bool findMergedFunctions() {
    bool any = false;
    for (const Made &made : calls.calls) {
      SmallVector<StringRef> values;
      for (const std::string &reference : made.call.references)
        if (calls.isLost(reference) && !resolved.count(reference))
          values.push_back(reference);
      for (onnx::NodeProto *node : values.empty() ? SmallVector<onnx::NodeProto *>() : made.nodes)
        for (int i = 0; i < node->input_size(); ++i)
          any |= isMergedFunction(made, {node, i}, values);
    }
    return any;
  }

  bool isMergedFunction(const Made &made, const Read &use, ArrayRef<StringRef> values) {
    const std::string name = initializerAt(use.name());
    if (name.empty() || !calls.holdsFloats(name) || claimOf.count({use.node, use.input}) ||
        calls.originsOf(name).empty() ||
        (isNamedBy(made.call, name) && !isReadAgain(made, use.name())))
      return false;
    const std::vector<std::string> &own = calls.originsOf(name);
    const bool isWhole = name == use.name(), isFunction = program.kindOf(name) != "PARAMETER";
    const std::vector<std::string> equal =
        isWhole ? equalParameters(use, own) : std::vector<std::string>();
    const bool isComputed = isWhole && !isFunction && none_of(values, [](StringRef value) {
                              return isMadeBy(value, kMoves | kRepeats);
                            });
    lost.undecided.insert(equal.begin(), equal.end());
    if (!equal.empty() || isComputed ||
        (isUniform(calls.tensorOf(name)) && (isFunction || isWhole)))
      lost.undecided.insert(own.begin(), own.end());
    return true;
  }

  // By the call's one node, more often than the call names it.
  static bool isReadAgain(const Made &made, const std::string &input) {
    return made.nodes.size() == 1 && is_contained(made.call.references, input) &&
           llvm::count(made.nodes[0]->input(), input) > llvm::count(made.call.references, input);
  }

  bool isNamedBy(const ProgramCall &call, const std::string &name) const {
    std::vector<std::string> named = program.parametersOf(call);
    auto isOne = [&](const std::string &one) {
      return is_contained(named, one) || is_contained(call.references, one);
    };
    return isOne(name) || any_of(program.sourcesOf(name), isOne); // and so all its origins
  }

  // Buffers and constants that no call names and no initializer holds: unused, or merged with what
  // was equal. One that every layer has, such as a mask, was merged with the first.
  std::vector<StringRef> goneBuffers() const {
    auto isThere = [&](StringRef target) {
      return calls.mentioned.count(target) || !calls.isLost(target.str());
    };
    llvm::StringSet<> there{"num_batches_tracked"};
    std::vector<StringRef> gone;
    for (StringRef target : program.bufferTargets().keys())
      if (isThere(target))
        there.insert(attributeOf(target));
      else
        gone.push_back(target);
    llvm::erase_if(gone, [&](StringRef target) { return there.contains(attributeOf(target)); });
    return gone;
  }

  // Whether an equal operation may have read a constant where this one reads a parameter. A number
  // of the code leaves no trace, a buffer its name. It was equal if all elements are, unless that
  // is what a norm had, and else if it is a copy, as its name then says. Or another operation shows
  // that there was such a constant.
  bool mayBeConstant(const Read &use, ArrayRef<std::string> owners,
                     ArrayRef<StringRef> gone) const {
    const TensorBytes &values = calls.tensorOf(use.name());
    const bool isOfNorm = StringRef(use.node->op_type()).ends_with("Normalization");
    return values.shape.empty() || (isUniform(values) && !gone.empty() && !isOfNorm) ||
           any_of(gone,
                  [&](StringRef buffer) {
                    return any_of(owners, [&](StringRef owner) {
                      return attributeOf(buffer).contains(attributeOf(owner));
                    });
                  }) ||
           any_of(claims.uses, [&](const Claim &claim) {
             return claim.form == Form::constant && claim.node->input(claim.input) == use.name();
           });
  }

  // A call that stands for others, too: they may have read another parameter that was equal, or a
  // constant.
  bool findMergedCalls(const llvm::StringSet<> &merged) {
    const std::vector<StringRef> gone = goneBuffers();
    bool any = false;
    for (const Made &made : calls.calls)
      for (const Read &use :
           merged.contains(made.call.name) ? calls.usesIn(made) : std::vector<Read>()) {
        const std::vector<std::string> own = ownersOf(use), equal = equalParameters(use, own);
        lost.undecided.insert(equal.begin(), equal.end());
        if (!equal.empty() || mayBeConstant(use, own, gone))
          lost.undecided.insert(own.begin(), own.end());
        any |= !own.empty() || !equal.empty();
      }
    return any;
  }

  // A module that has a tied parameter calls with another module's, and one whose layer has the
  // parameter lists it as well (predictions.bias, predictions.decoder.bias). "" where there is
  // none.
  std::string otherNameOf(const std::string &parameter, bool mayBeGone) const {
    const StringRef module = moduleOfParameter(parameter), attribute = attributeOf(parameter);
    std::string other;
    if (auto used = calls.usedIn.find(module.str()); used != calls.usedIn.end())
      for (StringRef one : used->second)
        if (moduleOfParameter(one) != module && !one.starts_with((module + ".").str()) &&
            (attributeOf(one) == attribute || (other.empty() && !mayBeGone)))
          other = one.str();
    for (StringRef one : program.parameters())
      if (other.empty() && !mayBeGone && attributeOf(one) == attribute &&
          calls.mentioned.count(one) && !module.empty() &&
          moduleOfParameter(moduleOfParameter(one)) == module)
        other = one.str();
    return other;
  }

  const RecordedCalls &calls;
  const ExportedProgram &program;
  Claims &claims;
  Losses &lost;
  std::map<std::pair<onnx::NodeProto *, int>, const Claim *> claimOf;
  std::set<std::string, std::less<>> claimed; // parameters
  std::set<std::string> resolved;             // values that are gone, by what they are of
};

} // namespace

void explainMissing(const RecordedCalls &calls, Claims &claims) { LossFinder(calls, claims).run(); }

static std::string textOfNorms(const Losses &lost) {
  std::string message;
  if (!lost.foldedNorms.empty())
    message = "the exporter folded batch norm away, with its parameters " +
              quotedList(lost.foldedNorms) + (lost.changed.empty() ? "" : ", and so ");
  if (!lost.changed.empty())
    message += (lost.foldedNorms.empty() ? "the exporter " : "") +
               std::string("changed the values of ") + quotedList(lost.changed);
  return message + ": training this file would update a different model from the one you exported";
}

static std::string textOfUses(const Losses &lost) {
  std::vector<std::string> names(lost.undecided.begin(), lost.undecided.end()),
      others(lost.unnamed.begin(), lost.unnamed.end());
  std::string message =
      names.empty()
          ? "the exporter merged or took out operations, and the file does not tell whether they "
          : "the exporter merged equal parameters or equal operations, and the file "
            "does not tell where " +
                quotedList(names) + (names.size() == 1 ? " belongs" : " belong");
  if (!others.empty())
    message += (names.empty() ? "" : ", nor whether what is gone ") + std::string("used ") +
               quotedList(others) + ", which no call that is left names";
  return message;
}

void refuseLosses(const ModelFile &file, Losses lost, Report &report) {
  // Of a norm that is called twice, and of what is said already.
  std::set<std::string> said;
  for (std::vector<std::string> *names : {&lost.foldedNorms, &lost.changed})
    llvm::erase_if(*names, [&](const std::string &name) { return !said.insert(name).second; });
  for (const std::string &name : said) {
    lost.undecided.erase(name);
    lost.unnamed.erase(name);
  }
  if (!said.empty())
    (void)report.refuse(Finding::lostParameters, file.path(), textOfNorms(lost), kWholeExport);
  if (!lost.undecided.empty() || !lost.unnamed.empty())
    (void)report.refuse(Finding::lostParameters, file.path(), textOfUses(lost), kWholeExport);
  else if (!lost.unclear.empty())
    report.warning(
        Finding::perhapsUnused, file.path(),
        quotedList(std::vector<std::string>(lost.unclear.begin(), lost.unclear.end()), 3) +
            (lost.unclear.size() == 1 ? ", which no call names, is"
                                      : ", which no call names, are") +
            " taken for unused",
        "where the module multiplies with it, or adds it: " + std::string(kWholeExport) +
            "; else nothing");
}

} // namespace trainc::reader

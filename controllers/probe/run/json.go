// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"github.com/prometheus/blackbox_exporter/config"
)

// The limit of cel-go (cel.CostLimit) is not sufficient for spec.http.json. It counts a call
// only after the call; it counts most calls with operands of unknown type as one unit, whatever
// their size, and all parts of an answer have an unknown type; and the counting itself takes
// quadratic time. Therefore a meter counts the cost.
const (
	// maxJSONCost limits the units of the evaluation for one answer (see meter), to about 0.2 s
	// of processor time.
	maxJSONCost = 500_000
	// maxLoops limits the macros of an expression.
	maxLoops = 10
	// bytesPerUnit is how many bytes of a text cost as much as one operation.
	bytesPerUnit = 16
	// stepsPerUnit converts units to steps of the budget: an operation takes about 100 ns.
	stepsPerUnit = 10
	// stepsPerCharacter is the cost to compile a character of an expression, and stepsPerByte is
	// the cost to decode a byte of an answer.
	stepsPerCharacter, stepsPerByte = 1000, 10
)

// permittedFunctions are the functions that an expression may use in addition to operators. The
// time of each function is at most proportional to the length of a text. Regular expressions are
// not permitted, and neither are time zones, which are read from files.
var permittedFunctions = []string{overloads.Size, overloads.Contains, overloads.StartsWith, overloads.EndsWith,
	overloads.TypeConvertBool, overloads.TypeConvertDouble, overloads.TypeConvertDuration, overloads.TypeConvertDyn,
	overloads.TypeConvertInt, overloads.TypeConvertString, overloads.TypeConvertTimestamp, overloads.TypeConvertType,
	overloads.TypeConvertUint}

var permittedOperators = []string{operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot,
	operators.Conditional, operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals,
	operators.Greater, operators.GreaterEquals, operators.In, operators.Add, operators.Subtract, operators.Multiply,
	operators.Divide, operators.Modulo, operators.Negate, operators.Index, operators.NotStrictlyFalse}

var jsonEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(cel.Variable("body", cel.DynType))
})

// jsonProgram is a compiled expression that can be evaluated once.
type jsonProgram struct {
	cel.Program
	meter *meter
}

// compileJSON compiles the expression as blackbox_exporter does, but limits its evaluation. It
// returns nil if there is no expression.
func compileJSON(expression string) (*config.CELProgram, error) {
	if expression == "" {
		return nil, nil
	}
	env, err := jsonEnvironment()
	if err != nil {
		return nil, fmt.Errorf("make CEL environment: %w", err)
	}
	parsed, issues := env.Parse(expression)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("%w: spec.http.json: %w", errSpec, err)
	}
	if err := checkSyntax(parsed.NativeRep()); err != nil {
		return nil, err
	}
	checked, issues := env.Check(parsed)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("%w: spec.http.json: %w", errSpec, err)
	}
	if kind := checked.OutputType(); kind != cel.BoolType && kind != cel.DynType {
		return nil, fmt.Errorf("%w: spec.http.json: the expression is a %s, and must be true or false", errSpec, kind)
	}
	m := &meter{remaining: maxJSONCost}
	program, err := env.Program(checked, cel.CustomDecoratorV2(m.decorate))
	if err != nil {
		return nil, fmt.Errorf("%w: spec.http.json: %w", errSpec, err)
	}
	return &config.CELProgram{Program: jsonProgram{Program: program, meter: m}, Expression: expression}, nil
}

// checkSyntax refuses expressions that could take too much time. It runs before types are
// checked: the type of {x: x} is twice as large as the type of x, and the checker writes it out.
func checkSyntax(expression *ast.AST) error {
	var refused error
	refuse := func(format string, args ...any) {
		refused = fmt.Errorf("%w: spec.http.json: "+format, append([]any{errSpec}, args...)...)
	}
	loops := 0
	ast.PostOrderVisit(expression.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.StructKind:
			refuse("the message %s cannot be used: compare single fields", e.AsStruct().TypeName())
		case ast.MapKind:
			for _, entry := range e.AsMap().Entries() {
				if entry.AsMapEntry().Key().Kind() != ast.LiteralKind {
					refuse("the keys of a map must be literals")
				}
			}
		case ast.ComprehensionKind:
			if loops++; loops > maxLoops {
				refuse("at most %d of the macros all, exists, exists_one, filter and map are permitted", maxLoops)
			}
		case ast.CallKind:
			if reason := explainRefusedFunction(e.AsCall().FunctionName()); reason != "" {
				refuse("%s", reason)
			}
		}
	}))
	return refused
}

// explainRefusedFunction returns why a function cannot be used; empty if it can be used.
func explainRefusedFunction(name string) string {
	switch {
	case slices.Contains(permittedFunctions, name), slices.Contains(permittedOperators, name):
		return ""
	case name == overloads.Matches:
		return "the function matches cannot be used, because nothing ends a match that takes long: use " +
			"spec.http.matches, or ==, in, contains, startsWith and endsWith"
	}
	return fmt.Sprintf("the function %s cannot be used; the permitted ones are %s", name,
		strings.Join(slices.Sorted(slices.Values(permittedFunctions)), ", "))
}

// countJSONSteps returns how many steps of the budget the evaluation of spec.http.json took.
func countJSONSteps(module *config.Module) int {
	if p := module.HTTP.FailIfBodyJsonNotMatchesCEL; p != nil {
		if program, ok := p.Program.(jsonProgram); ok {
			return (maxJSONCost - max(program.meter.remaining, 0)) * stepsPerUnit
		}
	}
	return 0
}

// meter counts the operations of one evaluation. Each operation costs one unit, and more if
// its result is a text. An operation that compares lists or maps pays for all their
// elements in advance, because an expression can create values with more elements than
// memory has bytes: [x, x] has twice as many elements as x. All other operations take
// constant time, or the time to copy a text.
type meter struct{ remaining int }

// spend subtracts units from the remaining cost, and ends the evaluation if the cost is
// exceeded. It panics in the same way as cel-go's own limit, and Program.Eval returns the panic
// as an error. An error that is a value would let loops continue.
func (m *meter) spend(units int) {
	if m.remaining -= units; m.remaining < 0 {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: fmt.Sprintf(
			"the evaluation of spec.http.json takes more than %d operations for this answer: use fewer loops, or "+
				"compare less of it", maxJSONCost)})
	}
}

// spendValue subtracts the cost of using a value once, without its elements: one unit, and one
// unit for each bytesPerUnit bytes of a text.
func (m *meter) spendValue(v ref.Val) {
	units := 1
	switch v := v.(type) {
	case types.String:
		units += len(v) / bytesPerUnit
	case types.Bytes:
		units += len(v) / bytesPerUnit
	}
	m.spend(units)
}

// spendElements subtracts the cost of traversing a value with all its elements.
func (m *meter) spendElements(v ref.Val) {
	m.spendValue(v)
	switch v := v.(type) {
	case traits.Lister:
		for elements := v.Iterator(); elements.HasNext() == types.True; {
			m.spendElements(elements.Next())
		}
	case traits.Mapper:
		for keys := v.Iterator(); keys.HasNext() == types.True; {
			key := keys.Next()
			m.spendElements(key)
			m.spendElements(v.Get(key))
		}
	}
}

// decorate wraps an operation so that its cost is counted.
func (m *meter) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch node := i.(type) {
	case interpreter.InterpretableConst, meteredAttribute, meteredOperation:
		return i, nil // a constant costs nothing, and the other nodes are counted already
	case interpreter.InterpretableAttribute:
		return meteredAttribute{node, m}, nil
	case interpreter.InterpretableCall:
		return meteredOperation{m.decorateCall(node), m}, nil
	}
	return meteredOperation{i, m}, nil
}

// decorateCall replaces the functions whose time depends on the number of
// elements in lists and maps. It returns other calls unchanged.
func (m *meter) decorateCall(c interpreter.InterpretableCall) interpreter.InterpretableV2 {
	var compute func(l, r ref.Val) ref.Val
	switch c.Function() {
	case operators.Equals:
		compute = m.compareValues
	case operators.NotEquals:
		compute = func(l, r ref.Val) ref.Val { return types.Bool(m.compareValues(l, r) != types.True) }
	case operators.In:
		compute = m.checkContains
	case operators.Add:
		compute = addValues
	default:
		return c
	}
	return interpreter.NewCall(c.ID(), c.Function(), c.OverloadID(), c.Args(), func(args ...ref.Val) ref.Val {
		return compute(args[0], args[1])
	})
}

// compareValues implements the operator ==, and counts the elements of both
// values if they are compared.
func (m *meter) compareValues(l, r ref.Val) ref.Val {
	if l.Type() == r.Type() { // values of different types are compared without their elements
		m.spendElements(l)
		m.spendElements(r)
	}
	return types.Equal(l, r)
}

// checkContains implements the operator in, and counts the elements of a list.
func (m *meter) checkContains(l, r ref.Val) ref.Val {
	container, ok := r.(traits.Container)
	if !ok {
		return types.MaybeNoSuchOverloadErr(r)
	}
	if _, isMap := r.(traits.Mapper); !isMap { // a map finds the key without a traversal
		m.spendElements(r)
	}
	return container.Contains(l)
}

// addValues implements the operator +, but refuses to add lists: the sum of lists takes
// quadratic time to read, and twice as long for each sum of sums. The macros filter and map use
// the operator to collect their result in a mutable list, which is permitted.
func addValues(l, r ref.Val) ref.Val {
	if _, isList := l.(traits.Lister); isList {
		if _, isResult := l.(traits.MutableLister); !isResult {
			return types.NewErr("spec.http.json: lists cannot be added")
		}
	}
	adder, ok := l.(traits.Adder)
	if !ok {
		return types.MaybeNoSuchOverloadErr(l)
	}
	return adder.Add(r)
}

// meteredOperation is an operation whose cost is counted.
type meteredOperation struct {
	interpreter.InterpretableV2
	meter *meter
}

// Exec implements interpreter.InterpretableV2.
func (n meteredOperation) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableV2.Exec(frame)
	n.meter.spendValue(v)
	return v
}

// Eval implements interpreter.Interpretable.
func (n meteredOperation) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// meteredAttribute is a variable, a field, an element or a condition whose cost is counted.
type meteredAttribute struct {
	interpreter.InterpretableAttribute
	meter *meter
}

// Exec implements interpreter.InterpretableV2.
func (n meteredAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableAttribute.Exec(frame)
	n.meter.spendValue(v)
	return v
}

// Eval implements interpreter.Interpretable.
func (n meteredAttribute) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// Resolve implements interpreter.Attribute. It is called if the value is the key of a field.
func (n meteredAttribute) Resolve(vars interpreter.Activation) (any, error) {
	v, err := n.InterpretableAttribute.Resolve(vars)
	if err == nil {
		n.meter.spendValue(n.Adapter().NativeToValue(v))
	}
	return v, err
}

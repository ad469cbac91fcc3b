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

// The limit of cel-go (cel.CostLimit) does not bound spec.http.json. It counts a call after it ran; it counts most
// calls with operands of unknown type, as all of an answer are, as one unit whatever their size; and the counting
// itself takes quadratic time. So a meter counts here.
const (
	// maxJSONCost bounds the evaluation for one answer, to about 0.2 s of processor time.
	maxJSONCost = 500_000
	// maxLoops bounds the macros of an expression.
	maxLoops = 10
	// bytesPerUnit of a text cost as much as one operation.
	bytesPerUnit = 16
	// stepsPerUnit is the cost in steps, those of the budget: an operation takes about 100 ns.
	stepsPerUnit = 10
	// stepsPerCharacter are those to compile an expression, and stepsPerByte those to decode an answer.
	stepsPerCharacter, stepsPerByte = 1000, 10
)

// permittedFunctions besides operators. Each takes time in proportion to the length of a text at most: no regular
// expressions, and no time zones, which are read from files.
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

// compileJSON compiles the expression as blackbox_exporter does, but bounds its evaluation. It returns nil if there is
// no expression.
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
	m := &meter{left: maxJSONCost}
	program, err := env.Program(checked, cel.CustomDecoratorV2(m.decorate))
	if err != nil {
		return nil, fmt.Errorf("%w: spec.http.json: %w", errSpec, err)
	}
	return &config.CELProgram{Program: jsonProgram{Program: program, meter: m}, Expression: expression}, nil
}

// checkSyntax refuses what could take too much time, before types are checked: the type of {x: x} is twice as large as
// that of x, and the checker writes it out.
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
			if why := refusedFunction(e.AsCall().FunctionName()); why != "" {
				refuse("%s", why)
			}
		}
	}))
	return refused
}

// refusedFunction says why a function cannot be used; empty where it can.
func refusedFunction(name string) string {
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

// jsonSteps returns how many steps of the budget the evaluation of spec.http.json took.
func jsonSteps(module *config.Module) int {
	if p := module.HTTP.FailIfBodyJsonNotMatchesCEL; p != nil {
		if program, ok := p.Program.(jsonProgram); ok {
			return (maxJSONCost - max(program.meter.left, 0)) * stepsPerUnit
		}
	}
	return 0
}

// meter counts the operations of one evaluation. Each costs a unit, and more where its result is a text. What compares
// lists and maps pays for all their elements in advance, because values can be made that have more elements than memory
// has bytes: [x, x] twice as many as x. All other operations take constant time, or that of copying a text.
type meter struct{ left int }

// take ends the evaluation if there is not that much left. It panics as cel-go's own limit does, which Program.Eval
// returns as an error: an error as a value would let loops go on.
func (m *meter) take(units int) {
	if m.left -= units; m.left < 0 {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: fmt.Sprintf(
			"the evaluation of spec.http.json takes more than %d operations for this answer: use fewer loops, or "+
				"compare less of it", maxJSONCost)})
	}
}

// takeValue takes what it costs to use a value once, without its elements.
func (m *meter) takeValue(v ref.Val) {
	units := 1
	switch v := v.(type) {
	case types.String:
		units += len(v) / bytesPerUnit
	case types.Bytes:
		units += len(v) / bytesPerUnit
	}
	m.take(units)
}

// takeElements takes what it costs to traverse a value.
func (m *meter) takeElements(v ref.Val) {
	m.takeValue(v)
	switch v := v.(type) {
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			m.takeElements(it.Next())
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			m.takeElements(key)
			m.takeElements(v.Get(key))
		}
	}
}

// decorate makes an operation count.
func (m *meter) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch node := i.(type) {
	case interpreter.InterpretableConst, meteredAttribute, metered:
		return i, nil
	case interpreter.InterpretableAttribute:
		return meteredAttribute{node, m}, nil
	case interpreter.InterpretableCall:
		return metered{m.call(node), m}, nil
	}
	return metered{i, m}, nil
}

// call replaces the functions whose time depends on the elements of lists and maps.
func (m *meter) call(c interpreter.InterpretableCall) interpreter.InterpretableV2 {
	var compute func(l, r ref.Val) ref.Val
	switch c.Function() {
	case operators.Equals:
		compute = m.equal
	case operators.NotEquals:
		compute = func(l, r ref.Val) ref.Val { return types.Bool(m.equal(l, r) != types.True) }
	case operators.In:
		compute = m.in
	case operators.Add:
		compute = add
	default:
		return c
	}
	return interpreter.NewCall(c.ID(), c.Function(), c.OverloadID(), c.Args(), func(args ...ref.Val) ref.Val {
		return compute(args[0], args[1])
	})
}

func (m *meter) equal(l, r ref.Val) ref.Val {
	if l.Type() == r.Type() { // others are compared without their elements
		m.takeElements(l)
		m.takeElements(r)
	}
	return types.Equal(l, r)
}

func (m *meter) in(l, r ref.Val) ref.Val {
	container, ok := r.(traits.Container)
	if !ok {
		return types.MaybeNoSuchOverloadErr(r)
	}
	if _, isMap := r.(traits.Mapper); !isMap { // a map looks its key up
		m.takeElements(r)
	}
	return container.Contains(l)
}

// add adds no lists, but for the macros filter and map, which collect their result in a list that can be changed: a sum
// of lists takes quadratic time to read, and twice as long for each sum of sums.
func add(l, r ref.Val) ref.Val {
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

// metered is an operation that counts.
type metered struct {
	interpreter.InterpretableV2
	meter *meter
}

// Exec implements interpreter.InterpretableV2.
func (n metered) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableV2.Exec(frame)
	n.meter.takeValue(v)
	return v
}

// Eval implements interpreter.Interpretable.
func (n metered) Eval(vars interpreter.Activation) ref.Val { return n.Exec(interpreter.AsFrame(vars)) }

// meteredAttribute is a variable, a field, an element or a condition that counts.
type meteredAttribute struct {
	interpreter.InterpretableAttribute
	meter *meter
}

// Exec implements interpreter.InterpretableV2.
func (n meteredAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableAttribute.Exec(frame)
	n.meter.takeValue(v)
	return v
}

// Eval implements interpreter.Interpretable.
func (n meteredAttribute) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// Resolve implements interpreter.Attribute. It is called where the value is the key of a field.
func (n meteredAttribute) Resolve(vars interpreter.Activation) (any, error) {
	v, err := n.InterpretableAttribute.Resolve(vars)
	if err == nil {
		n.meter.takeValue(n.Adapter().NativeToValue(v))
	}
	return v, err
}

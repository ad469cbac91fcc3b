// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// TestSlowJSONIsRefused has expressions that take seconds to compile, or to evaluate once without an end in between.
func TestSlowJSONIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ expression, says string }{
		"a regular expression":         {`body.s.matches("` + slowPattern + `")`, "use spec.http.matches"},
		"one of two arguments":         {`matches(body.s, "` + slowPattern + `")`, "use spec.http.matches"},
		"one from the answer":          {`body.a.all(x, x.s.matches(body.s))`, "use spec.http.matches"},
		"a qualified name":             {`.matches(body.s, "a")`, "the function .matches cannot be used"},
		"time zones, which are files":  {`timestamp(body.s).getHours(body.zone) == 1`, "the function getHours cannot"},
		"messages":                     {`google.protobuf.Value{} == body`, "google.protobuf.Value cannot be used"},
		"types that double":            {"body" + strings.Repeat(".map(x,{x:x})", 9) + ".all(x,x==x)", "must be literals"},
		"loops over results, repeated": {"body" + strings.Repeat(".map(x,[x,x])", 40) + ".all(x,x==x)", "at most 10"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := with(specFor("http://127.0.0.1:1/"), func(s *v1alpha1.EndpointProbeSpec) {
				s.HTTP = &v1alpha1.HTTPProbe{JSON: tc.expression}
			})
			err := newTestEngine(Options{}).Set(key("a"), Probe{Name: "a", Spec: spec, Targets: []string{""}})
			if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestStepsOfJSONAreBounded has expressions that would take minutes, or gigabytes, for an answer of 64 KiB if single
// operations were counted after they ran, or by one whatever their size.
func TestStepsOfJSONAreBounded(t *testing.T) {
	numbers := strings.Repeat("1,", 10_000) + "1"
	answer := `{"s":"` + strings.Repeat("a", 20<<10) + `","deep":[[` + numbers + `]],"list":[` + numbers + `]}`
	for name, expression := range map[string]string{
		"nested loops":                "body.list.all(x, body.list.all(y, body.list.all(z, true)))",
		"loops that do nothing":       "body.list.exists_one(x, body.list.exists_one(y, false))",
		"loops that collect":          "body.list.map(x, body.list.filter(y, true)).size() > 0",
		"texts that double":           "[body.s]" + strings.Repeat(".map(x,x+x)", 9) + "==[]",
		"lists that double":           "[body]" + strings.Repeat(".map(x,[x,x])", 8) + ".all(x,x==[x,x,x,x]||x==x)",
		"lists that double, searched": "[body]" + strings.Repeat(".map(x,[x,x])", 8) + ".all(x,x in [x])",
		"maps that double":            "[body]" + strings.Repeat(".map(x,{1:x,2:x})", 8) + ".all(x,x!=x)",
		"deep comparisons":            "body.list.all(x, body.deep == body.deep)",
		"deep searches":               "body.list.all(x, !([1.0] in body.deep))",
		"sizes of a text":             "body.list.all(x, body.list.all(y, size(body.s) > 1))",
		"a text as a key":             "body.list.all(x, body.list.all(y, body[body.s] == 1.0 || true))",
		"a key by a condition":        "body.list.all(x, body.list.all(y, body[true?body.s:''] == 1.0 || true))",
		"searches in a text":          "body.list.all(x, body.list.all(y, !body.s.contains(body.s + 'b')))",
		"conversions of a text":       "body.list.all(x, body.list.all(y, int(body.s) == 1))",
		"errors":                      "body.list.all(x, body.list.all(y, x.a.b == 1.0))",
	} {
		t.Run(name, func(t *testing.T) {
			compiled, err := compileJSON(expression)
			if err != nil {
				t.Fatal(err)
			}
			var body any
			must(t, json.Unmarshal([]byte(answer), &body))
			var result ref.Val
			allocated := untrustedtest.Allocated(func() {
				result, _, err = compiled.ContextEval(t.Context(), map[string]any{"body": body})
			})
			if err == nil || !strings.Contains(err.Error(), "more than 500000 operations") {
				t.Errorf("got %v, %v", result, err)
			}
			if allocated > 128<<20 {
				t.Errorf("%d MiB are allocated", allocated>>20)
			}
		})
	}
}

// TestJSONCostsSteps: the evaluation of an answer is charged to the budget.
func TestJSONCostsSteps(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[`+strings.Repeat("1,", 10_000)+`1]}`)
	}))
	t.Cleanup(server.Close)
	run := func(expression string) result {
		return runProbe(t, nil, within(with(specFor(server.URL), func(s *v1alpha1.EndpointProbeSpec) {
			s.HTTP = &v1alpha1.HTTPProbe{JSON: expression}
		}), 5*time.Minute), probes.Target{})
	}
	little, much, most := run("body.items.size() > 1"), run("body.items.all(x, x == 1.0)"),
		run("body.items.all(x, body.items.all(y, x == y))")
	if little.failure != nil || much.failure != nil {
		t.Errorf("got %+v, %+v", little.failure, much.failure)
	}
	if little.steps == 0 || much.steps < little.steps+10_000*3*stepsPerUnit ||
		most.steps < maxJSONCost*stepsPerUnit || most.steps > maxSteps {
		t.Errorf("%d, %d and %d steps are charged", little.steps, much.steps, most.steps)
	}
	checkResult(t, run("(body.items + body.items).size() > 1"), v1alpha1.ReasonBadAnswer, "lists cannot be added")
}

// TestJSONExpressions that people write.
func TestJSONExpressions(t *testing.T) {
	const answer = `{"status":"ok","ready":2,"total":3,"seen":"2026-01-02T03:04:05Z",
		"items":[{"name":"a","ready":true},{"name":"b","ready":true,"lag":5}],"by":{"a":{"up":true},"b":{"up":true}}}`
	for expression, want := range map[string]bool{
		`body.status in ["ok", "ready"] && body.ready + 1.0 == body.total`:                true,
		`body.status.startsWith("o") && body.status + "!" == "ok!"`:                       true,
		`body.items.all(i, i.ready) && !body.items.exists(i, i.name == "c")`:              true,
		`body.items.filter(i, has(i.lag)).size() == 1`:                                    true,
		`body.items.map(i, i.name) == ["a", "b"]`:                                         true,
		`"b" in body.items.map(i, i.name)`:                                                true,
		`body.items.exists_one(i, i.name == "a")`:                                         true,
		`body.by.all(k, body.by[k].up) && "a" in body.by`:                                 true,
		`body.by == {"a": {"up": true}, "b": {"up": true}}`:                               true,
		`(has(body.nothing) ? body.nothing : []).all(i, i.ready)`:                         true,
		`timestamp(body.seen) > timestamp("2026-01-01T00:00:00Z")`:                        true,
		`int(body.ready) == 2 && string(body.ready) == "2" && type(body.ready) == double`: true,
		`body.items[1].lag != 5.0`:                                                        false,
		`1 in [2] || body.status != "ok"`:                                                 false,
	} {
		compiled, err := compileJSON(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		var body any
		must(t, json.Unmarshal([]byte(answer), &body))
		got, _, err := compiled.ContextEval(t.Context(), map[string]any{"body": body})
		if err != nil || got != types.Bool(want) {
			t.Errorf("%s: got %v, %v, want %t", expression, got, err, want)
		}
	}
}

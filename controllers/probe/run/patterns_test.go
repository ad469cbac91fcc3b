// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp/syntax"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// slowPattern has 245 characters, and takes five seconds for an answer of 16 KiB: it is an expression of 30,000
// instructions, and the timeout of a probe does not end a match.
var slowPattern = strings.Repeat("(.{0,1000}x)?", 18) + strings.Repeat("y", 11)

// program returns how many instructions package regexp makes of an expression.
func program(t testing.TB, text string) int {
	t.Helper()
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		t.Fatal(err)
	}
	return len(compiled.Inst)
}

// TestSlowExpressionsAreRefused shows first that matching would take more steps than anything could permit: steps are
// counted because times depend on the machine.
func TestSlowExpressionsAreRefused(t *testing.T) {
	if len(slowPattern) != 245 || program(t, slowPattern)*(16<<10) < 25*maxSteps {
		t.Fatalf("%d characters, %d instructions: not an attack", len(slowPattern), program(t, slowPattern))
	}
	slow := []string{slowPattern}
	header := []v1alpha1.HeaderMatch{{Name: "X", Regex: slowPattern}}
	many := []string{strings.Repeat("a?", 60), strings.Repeat("b?", 60), strings.Repeat("c?", 60),
		strings.Repeat("d?", 60), strings.Repeat("e?", 60)}
	for name, change := range map[string]func(*v1alpha1.EndpointProbeSpec){
		"matches":    func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{Matches: slow} },
		"notMatches": func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{NotMatches: slow} },
		"a header":   func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{HeaderMatches: header} },
		"no header":  func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{HeaderNotMatches: header} },
		"TCP": func(s *v1alpha1.EndpointProbeSpec) {
			s.Target.URL, s.TCP = "tcp://127.0.0.1:1", &v1alpha1.TCPProbe{Expect: slowPattern}
		},
		"DNS": func(s *v1alpha1.EndpointProbeSpec) {
			s.Target.URL, s.DNS = "dns://127.0.0.1", &v1alpha1.DNSProbe{Query: "a.example", Matches: slowPattern}
		},
		"many small ones": func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{Matches: many} },
		"JSON": func(s *v1alpha1.EndpointProbeSpec) {
			s.HTTP = &v1alpha1.HTTPProbe{JSON: `body.s.matches("` + slowPattern + `")`}
		},
		"megabytes of program": func(s *v1alpha1.EndpointProbeSpec) {
			s.HTTP = &v1alpha1.HTTPProbe{Matches: []string{"(" + strings.Repeat(`\pL`, 80) + "){1000}"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newTestEngine(Options{})
			spec := with(specFor("http://127.0.0.1:1/"), change)
			err := e.Set(key("a"), Probe{Name: "a", Spec: spec, Targets: []string{""}})
			says := "at most 500 are permitted"
			if spec.HTTP != nil && spec.HTTP.JSON != "" {
				says = "the function matches cannot be used"
			}
			if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestStepsOfAnAnswerAreBounded: the more instructions, the less is read.
func TestStepsOfAnAnswerAreBounded(t *testing.T) {
	for _, pattern := range []string{"ok", "^(all|some) (is|are) well$", `"status":\s*"(ok|ready)"`, ".{0,150}x",
		".{0,240}x"} {
		limits, err := computeCost(with(specFor("http://127.0.0.1:1/"), func(s *v1alpha1.EndpointProbeSpec) {
			s.HTTP = &v1alpha1.HTTPProbe{Matches: []string{pattern}}
		}))
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if steps := program(t, pattern) * limits.bodyLimit; steps > 2*maxSteps ||
			limits.bodyLimit < maxSteps/maxInstructions {
			t.Errorf("%s: %d bytes are read, and take %d steps", pattern, limits.bodyLimit, steps)
		}
	}
	server := httptest.NewServer(hostileHandler())
	t.Cleanup(server.Close)
	// Matching takes a tenth of a second, and seconds with the race detector on a busy machine.
	endless := within(specFor(server.URL+"/endless"), 5*time.Minute)
	got := runProbe(t, nil, with(endless, func(s *v1alpha1.EndpointProbeSpec) {
		s.HTTP = &v1alpha1.HTTPProbe{Matches: []string{".{0,240}x"}}
	}), probes.Target{})
	if got.failure == nil || got.failure.Reason != v1alpha1.ReasonAnswerTooLarge ||
		!strings.Contains(got.failure.Message, "limit for the expressions of this probe") {
		t.Errorf("an endless answer: %+v", got.failure)
	}
	if got.steps == 0 || got.steps > 3*maxSteps {
		t.Errorf("%d steps are charged", got.steps)
	}
}

// TestLargeJSONIsNotDecoded has 128 KiB of JSON, of which a decoder would make megabytes.
func TestLargeJSONIsNotDecoded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "["+strings.Repeat("[],", 43_000)+"[]]")
	}))
	t.Cleanup(server.Close)
	got := runProbe(t, nil, with(specFor(server.URL), func(s *v1alpha1.EndpointProbeSpec) {
		s.HTTP = &v1alpha1.HTTPProbe{JSON: "size(body) > 1"}
	}), probes.Target{})
	if got.failure == nil || got.failure.Reason != v1alpha1.ReasonAnswerTooLarge {
		t.Errorf("got %+v", got.failure)
	}
}

// TestEndlessLines probes a TCP server that sends lines until the client stops reading.
func TestEndlessLines(t *testing.T) {
	var sent atomic.Int64
	server := serveRaw(t, func(conn net.Conn) {
		for {
			n, err := conn.Write([]byte(strings.Repeat("x", 1000) + "\n"))
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	got := runProbe(t, nil, within(with(specFor("tcp://"+server), func(s *v1alpha1.EndpointProbeSpec) {
		s.TCP = &v1alpha1.TCPProbe{Expect: "^.{0,200}y"}
	}), time.Minute), probes.Target{})
	if got.failure == nil || got.failure.Reason != v1alpha1.ReasonAnswerTooLarge {
		t.Errorf("got %+v", got.failure)
	}
	if got.steps == 0 || got.steps > 3*maxSteps {
		t.Errorf("%d steps are charged for %d bytes", got.steps, sent.Load())
	}
}

// TestMatchingDoesNotDelayOtherProbes: probes that match wait for each other, and only for each other.
func TestMatchingDoesNotDelayOtherProbes(t *testing.T) {
	var served, matching, most atomic.Int64
	wait := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/match") {
			served.Add(1)
			return
		}
		most.Store(max(most.Load(), matching.Add(1)))
		defer matching.Add(-1)
		select {
		case <-wait:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "well")
	}))
	t.Cleanup(server.Close)
	e := newTestEngine(Options{Fast: 2, Slow: 2, MatchingFast: 1, MatchingSlow: 2})
	for i := range 20 {
		name := fmt.Sprintf("match-%d", i)
		p := named(probeOf(server.URL+"/"+name, 50*time.Millisecond), name)
		p.Spec.HTTP = &v1alpha1.HTTPProbe{Matches: []string{"w[e]+ll"}}
		must(t, e.Set(key(name), p))
	}
	startEngine(t, e)
	eventually(t, "matching probes wait", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.matching.slow.running == 2 && len(e.matching.slow.waiting) > 0
	})
	must(t, e.Set(key("plain"), named(probeOf(server.URL+"/plain", 50*time.Millisecond), "plain")))
	eventually(t, "the other probe runs", func() bool { return served.Load() > 3 })
	close(wait)
	eventually(t, "each matching probe has run", func() bool {
		for i := range 20 {
			if e.Verdicts(key(fmt.Sprintf("match-%d", i)))[""].At.IsZero() {
				return false
			}
		}
		return true
	})
	if most.Load() > 3 {
		t.Errorf("%d matching probes ran at a time, want at most 3", most.Load())
	}
}

// TestBudget verifies that a probe waits for the steps of all previous probes.
func TestBudget(t *testing.T) {
	b := newBudget()
	b.waitForSteps(t.Context(), burstSteps) // does not block: nothing was taken yet
	for range 3 {
		b.charge(0, 10*maxSteps)
	}
	if owed := -b.steps.Tokens(); owed < 2*burstSteps {
		t.Errorf("%f steps are owed after %d were taken at once", owed, 34*maxSteps)
	}
	b = newBudget()
	b.charge(maxSteps, maxSteps/2)
	if left := b.steps.Tokens(); left < burstSteps-1 {
		t.Errorf("%f steps are left although the run had paid before", left)
	}
}

// FuzzInstructions compares the counted instructions with the instructions
// that package regexp compiles.
func FuzzInstructions(f *testing.F) {
	for _, seed := range []string{slowPattern, "ok", "(?i)ok|(a{3,7}b){2,5}", `\pL{1000}`, "[^a-z]+?", "(?:)*{2}",
		"a{,5}", "((a{0,30}){0,30})", "x*" + strings.Repeat("(y|z)", 40)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 256 {
			return
		}
		limits, err := computeCost(v1alpha1.EndpointProbeSpec{HTTP: &v1alpha1.HTTPProbe{Matches: []string{text}}})
		if err != nil {
			return
		}
		// An expression that is searched as text compiles to as many instructions as it has
		// characters, but executes none of them.
		if compiled := program(t, text); limits.instructions > 1 && compiled > 3*limits.instructions+10 {
			t.Errorf("%q has %d instructions, counted as %d", text, compiled, limits.instructions)
		}
	})
}

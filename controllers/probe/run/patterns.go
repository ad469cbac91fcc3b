// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// The time of Go's regular expressions is proportional to the product of the instructions
// of an expression and the bytes of the text, about 10 ns for each step. A match cannot
// be interrupted, not even by the timeout of its probe. Therefore both factors are
// limited before the match.
const (
	// maxInstructions limits the expressions of one probe together.
	maxInstructions = 500
	// maxSteps limits the product for one answer, to about 0.2 s of processor time.
	maxSteps = 16 << 20
	// maxOverhead is the limit for headers and TLS of an answer that is
	// matched, in addition to its body.
	maxOverhead = 32 << 10
	// maxJSON limits an answer for which spec.http.json is evaluated: the decoded answer
	// takes 30 times as much memory.
	maxJSON = 64 << 10
	// stepsPerSecond limits the expressions of all probes of an Engine together,
	// to about half a processor.
	stepsPerSecond = 50_000_000
	// burstSteps is how many steps may run at once before stepsPerSecond applies.
	burstSteps = 4 * maxSteps
)

// cost is the resource usage of a probe in addition to its connection.
type cost struct {
	// instructions is the number of instructions of all regular expressions.
	instructions int
	// bodyLimit limits the bytes that are read of an answer's body.
	bodyLimit int
	// jsonLength is the length of spec.http.json.
	jsonLength int
	// isMatched is true if the answer is kept in memory and evaluated.
	isMatched bool
}

// computeCost returns the cost of a spec. The error wraps errSpec if the cost is too high.
func computeCost(spec v1alpha1.EndpointProbeSpec) (cost, error) {
	c := cost{bodyLimit: maxBody}
	texts := listPatterns(spec)
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		for _, text := range texts[field] {
			parsed, err := syntax.Parse(text, syntax.Perl)
			if err != nil {
				return c, fmt.Errorf("%w: %s: %w", errSpec, field, err)
			}
			c.instructions += countInstructions(parsed, 0)
			c.isMatched = true
		}
	}
	if c.instructions > maxInstructions {
		return c, fmt.Errorf("%w: the regular expressions have %d instructions together, and at most %d are "+
			"permitted: use smaller counts in braces, or fewer expressions", errSpec, min(c.instructions, maxCounted),
			maxInstructions)
	}
	if c.instructions > 0 {
		c.bodyLimit = min(c.bodyLimit, maxSteps/c.instructions)
	}
	if spec.HTTP != nil && spec.HTTP.JSON != "" {
		c.bodyLimit, c.jsonLength, c.isMatched = min(c.bodyLimit, maxJSON), len(spec.HTTP.JSON), true
	}
	return c, nil
}

// streamLimit returns how many bytes of a connection may be read.
func (c cost) streamLimit() int64 {
	if c.isMatched {
		return int64(c.bodyLimit + maxOverhead)
	}
	return maxStream
}

// listPatterns returns the regular expressions of a spec by field.
func listPatterns(spec v1alpha1.EndpointProbeSpec) map[string][]string {
	out := map[string][]string{}
	if h := spec.HTTP; h != nil {
		out["spec.http.matches"], out["spec.http.notMatches"] = h.Matches, h.NotMatches
		for _, m := range h.HeaderMatches {
			out["spec.http.headerMatches"] = append(out["spec.http.headerMatches"], m.Regex)
		}
		for _, m := range h.HeaderNotMatches {
			out["spec.http.headerNotMatches"] = append(out["spec.http.headerNotMatches"], m.Regex)
		}
	}
	if spec.TCP != nil && spec.TCP.Expect != "" {
		out["spec.tcp.expect"] = []string{spec.TCP.Expect}
	}
	if spec.DNS != nil && spec.DNS.Matches != "" {
		out["spec.dns.matches"] = []string{spec.DNS.Matches}
	}
	return out
}

// maxCounted is more than any expression may have, so that counting can stop there.
const maxCounted = 1_000_000

// countInstructions returns approximately how many instructions package regexp compiles an
// expression to, and at least maxCounted if there are more. It does not compile the expression,
// because that can take megabytes: a count in braces repeats its operand. depth is 0 for a whole
// expression, and more for its parts.
func countInstructions(re *syntax.Regexp, depth int) int {
	if depth == 0 && re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase == 0 {
		return 1 // a literal is searched as text
	}
	sum := 0
	for _, sub := range re.Sub {
		sum = min(sum+countInstructions(sub, depth+1), maxCounted)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpRepeat:
		times := max(re.Min, re.Max, 1)
		return min(sum*times+times, maxCounted)
	case syntax.OpConcat:
		return sum
	case syntax.OpAlternate:
		return sum + len(re.Sub)
	default:
		return sum + 1
	}
}

// budget limits the steps of all probes together. Before a run, a probe pays the steps of its
// previous run. After the run, it pays the difference.
type budget struct{ steps *rate.Limiter }

// newBudget returns a budget with stepsPerSecond and burstSteps.
func newBudget() budget { return budget{rate.NewLimiter(stepsPerSecond, burstSteps)} }

// expectedSteps returns the steps that a probe pays before its first run: the steps for an answer
// of maxJSON bytes, or less if the limit of the body is lower.
func (c cost) expectedSteps() int { return c.countSteps(min(c.bodyLimit, maxJSON)) }

// countSteps returns the maximum steps for an answer with the given number of bytes, without the
// evaluation of spec.http.json.
func (c cost) countSteps(received int) int {
	perByte := c.instructions
	if c.jsonLength > 0 {
		perByte += stepsPerByte
	}
	return received*perByte + c.jsonLength*stepsPerCharacter
}

// waitForSteps waits until a probe with the given steps may start, or until ctx ends.
func (b budget) waitForSteps(ctx context.Context, steps int) {
	_ = b.steps.WaitN(ctx, min(steps, burstSteps)) // the run fails with the same error of ctx
}

// charge charges the steps of a run that exceed the paid steps.
func (b budget) charge(paid, took int) {
	if took > paid {
		b.steps.ReserveN(time.Now(), min(took-paid, burstSteps))
	}
}

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

// Go's regular expressions take time in proportion to the product of the instructions of an expression and the bytes
// of the text, about 10 ns for each step, and nothing ends a match before its end: not the timeout of its probe either.
// So both are bounded before it begins.
const (
	// maxInstructions bounds the expressions of one probe together.
	maxInstructions = 500
	// maxSteps bounds the product for one answer, which is about 0.2 s of processor time.
	maxSteps = 16 << 20
	// maxOverhead is what may come with the body of an answer that is matched: headers and TLS.
	maxOverhead = 32 << 10
	// maxJSON limits an answer that spec.http.json is evaluated for: decoded, it takes 30 times as much memory.
	maxJSON = 64 << 10
	// stepsPerSecond bounds the expressions of all probes of an Engine together, to about half a processor.
	stepsPerSecond = 50_000_000
	// burstSteps may be done at once before that.
	burstSteps = 4 * maxSteps
)

// cost is what a probe may take besides its connection.
type cost struct {
	// instructions of all its regular expressions.
	instructions int
	// body limits what is read of an answer.
	body int
	// json is the length of spec.http.json.
	json int
	// isMatched tells whether the answer is kept in memory and evaluated.
	isMatched bool
}

// costOf returns the cost of a spec. The error wraps errSpec if that is too high.
func costOf(spec v1alpha1.EndpointProbeSpec) (cost, error) {
	c := cost{body: maxBody}
	texts := patterns(spec)
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		for _, text := range texts[field] {
			parsed, err := syntax.Parse(text, syntax.Perl)
			if err != nil {
				return c, fmt.Errorf("%w: %s: %w", errSpec, field, err)
			}
			c.instructions += instructions(parsed, 0)
			c.isMatched = true
		}
	}
	if c.instructions > maxInstructions {
		return c, fmt.Errorf("%w: the regular expressions have %d instructions together, and at most %d are "+
			"permitted: use smaller counts in braces, or fewer expressions", errSpec, min(c.instructions, saturated),
			maxInstructions)
	}
	if c.instructions > 0 {
		c.body = min(c.body, maxSteps/c.instructions)
	}
	if spec.HTTP != nil && spec.HTTP.JSON != "" {
		c.body, c.json, c.isMatched = min(c.body, maxJSON), len(spec.HTTP.JSON), true
	}
	return c, nil
}

// stream limits what is read of a connection.
func (c cost) stream() int64 {
	if c.isMatched {
		return int64(c.body + maxOverhead)
	}
	return maxStream
}

// patterns returns the regular expressions of a spec by field.
func patterns(spec v1alpha1.EndpointProbeSpec) map[string][]string {
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

// saturated is more than any expression may have, so that counting can end there.
const saturated = 1_000_000

// instructions returns about how many instructions package regexp makes of an expression. It does not compile it,
// because that can take megabytes: counts in braces repeat what they count.
func instructions(re *syntax.Regexp, depth int) int {
	if depth == 0 && re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase == 0 {
		return 1 // it is searched as text
	}
	sum := 0
	for _, sub := range re.Sub {
		sum = min(sum+instructions(sub, depth+1), saturated)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpRepeat:
		times := max(re.Min, re.Max, 1)
		return min(sum*times+times, saturated)
	case syntax.OpConcat:
		return sum
	case syntax.OpAlternate:
		return sum + len(re.Sub)
	default:
		return sum + 1
	}
}

// budget bounds the steps of all probes together. A probe pays in advance what it took the last time, and the rest
// afterwards.
type budget struct{ steps *rate.Limiter }

func newBudget() budget { return budget{rate.NewLimiter(stepsPerSecond, burstSteps)} }

// expected are the steps that a probe pays before its first run.
func (c cost) expected() int { return c.steps(min(c.body, maxJSON)) }

// steps returns how many steps an answer takes at most, besides the evaluation of spec.http.json.
func (c cost) steps(received int) int {
	perByte := c.instructions
	if c.json > 0 {
		perByte += stepsPerByte
	}
	return received*perByte + c.json*stepsPerCharacter
}

// wait returns when a probe that takes that many steps may start, or when ctx ends.
func (b budget) wait(ctx context.Context, steps int) {
	_ = b.steps.WaitN(ctx, min(steps, burstSteps)) // the only error is that of ctx, which the run meets as well
}

// charge takes what a run took in excess of what it paid.
func (b budget) charge(paid, took int) {
	if took > paid {
		b.steps.ReserveN(time.Now(), min(took-paid, burstSteps))
	}
}

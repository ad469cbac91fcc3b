// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// spans are windows and offsets in PromQL, and durations are those in them: the window of a subquery has two.
var (
	spans     = regexp.MustCompile(`(?:\[|offset )` + duration + `(?::` + duration + `)?`)
	durations = regexp.MustCompile(duration)
)

// duration is of one unit or of several, such as 1h4m.
const duration = `(?:[0-9]+(?:ms|[smhdwy]))+`

// Compress divides every duration of rules by a factor: windows, offsets, intervals and waits. What they say of slices
// stays true, as a slice is an evaluation: with a factor of 60 an hour of it passes in a minute. All durations have to
// be multiples of the factor in milliseconds. A server that evaluates such rules needs a scrape interval and a lookback
// that are divided too.
func Compress(groups []monitoringv1.RuleGroup, factor int) ([]monitoringv1.RuleGroup, error) {
	out := make([]monitoringv1.RuleGroup, len(groups))
	for i, group := range groups {
		group.Rules = slices.Clone(group.Rules)
		if err := compress((*string)(group.Interval), factor,
			func(d string) { group.Interval = new(monitoringv1.Duration(d)) }); err != nil {
			return nil, err
		}
		if err := compress((*string)(group.QueryOffset), factor,
			func(d string) { group.QueryOffset = new(monitoringv1.Duration(d)) }); err != nil {
			return nil, err
		}
		for j := range group.Rules {
			if err := compressRule(&group.Rules[j], factor); err != nil {
				return nil, err
			}
		}
		out[i] = group
	}
	return out, nil
}

// waits are the durations in a configuration of Alertmanager.
var waits = regexp.MustCompile(`((?:group_wait|group_interval|repeat_interval): )([0-9a-z]+)`)

// CompressConfig divides the times of the routes of a configuration of Alertmanager by a factor.
func CompressConfig(config string, factor int) (string, error) {
	var failed error
	out := waits.ReplaceAllStringFunc(config, func(found string) string {
		parts := waits.FindStringSubmatch(found)
		if parts[2] == "0s" {
			return found
		}
		if err := compress(&parts[2], factor, func(d string) { parts[2] = d }); err != nil {
			failed = err
		}
		return parts[1] + parts[2]
	})
	return out, failed
}

func compressRule(rule *monitoringv1.Rule, factor int) error {
	if err := compress((*string)(rule.For), factor,
		func(d string) { rule.For = new(monitoringv1.Duration(d)) }); err != nil {
		return err
	}
	if err := compress((*string)(rule.KeepFiringFor), factor,
		func(d string) { rule.KeepFiringFor = new(monitoringv1.NonEmptyDuration(d)) }); err != nil {
		return err
	}
	var failed error
	compressOne := func(found string) string {
		if err := compress(&found, factor, func(d string) { found = d }); err != nil {
			failed = err
		}
		return found
	}
	rule.Expr = intstr.FromString(spans.ReplaceAllStringFunc(rule.Expr.String(), func(found string) string {
		return durations.ReplaceAllStringFunc(found, compressOne)
	}))
	return failed
}

// compress sets a duration, if there is one, to its part.
func compress(text *string, factor int, set func(string)) error {
	if text == nil {
		return nil
	}
	d, err := model.ParseDuration(*text)
	if err != nil {
		return fmt.Errorf("compress %q: %w", *text, err)
	}
	part := time.Duration(d) / time.Duration(factor)
	if part < time.Millisecond || part%time.Millisecond != 0 {
		return fmt.Errorf("compress %q by %d: it is no whole number of milliseconds", *text, factor)
	}
	set(model.Duration(part).String())
	return nil
}

// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// hubMemory is for how long the last samples of the hub count while it exports none:
// the first notification about an alert may be sent while another hub takes over.
const hubMemory = 10 * time.Minute

// latest has the series of a selector, or the last ones if there are none now.
func latest(selector string) string {
	return fmt.Sprintf("(%[1]s or on () last_over_time(%[1]s[%[2]s]))", selector, duration(hubMemory))
}

// changeBy selects what rollouts change by the operator of an alert, a label that has its
// version, and further matchers. It is a format whose arguments are operatorAndVersion.
func changeBy(version string, further ...string) string {
	return latest(fmt.Sprintf("%s{%s=%%[1]q,%s=%%[2]q,%s}", series.RolloutChangeStart, series.OperatorNamespace,
		series.Operator, strings.Join(append([]string{version + "=%[3]q"}, further...), ",")))
}

// operatorAndVersion are the labels of an alert about a release.
var operatorAndVersion = []string{series.OperatorNamespace, series.Operator, series.Version}

const (
	// nameOfRollout is a template of the name of the rollout $x.
	nameOfRollout = `{{ $x | label "operator_namespace" }}/{{ $x | label "rollout" }}`
	// inNamespace is the end of a command about an alert's operator.
	inNamespace = " -n {{ $labels.operator_namespace }}"
	// startOf is a template of the time in the value of $x.
	startOf = `{{ ($x | value | toTime).UTC.Format "2006-01-02 15:04" }} UTC`
	// changeText is a template of what the rollout $x changes.
	changeText = `{{ with $x | label "from" }}{{ . }} -> {{ end }}{{ $x | label "version" }}` +
		`{{ if eq ($x | label "from") ($x | label "version") }} (same version){{ end }}` +
		`{{ if ne ($x | label "kind") "` + series.KindRollout + `" }}, {{ $x | label "kind" }}{{ end }}, started ` +
		startOf + `{{ with $x | label "approved_by" }}, approved by {{ . }}{{ end }}`
)

// addChange adds what is known of the rollout that brought the version of an alert to
// its annotations, and what to do, with the reason for a rollback. There is a series for each version of an operator,
// and few alerts about releases, so that these queries cost little. An alert about
// several versions finds none.
func addChange(annotations map[string]string, reason string) map[string]string {
	change := changeBy(series.Version)
	ofRollout := func(each string) string {
		return list(fmt.Sprintf("topk(1, %s)", change), each, operatorAndVersion...)
	}
	rolledBack := list(fmt.Sprintf("topk(1, %s > scalar(max(%s)))", changeBy(series.From,
		fmt.Sprintf(`%s=~".*%s"`, series.Kind, series.KindRollback)), change),
		`; {{ $x | label "kind" }} `+nameOfRollout+" started "+startOf, operatorAndVersion...)
	maps.Copy(annotations, map[string]string{
		"rollout":  ofRollout(nameOfRollout),
		"wave":     ofRollout(`{{ $x | label "wave" }}`),
		"change":   ofRollout(changeText + rolledBack),
		"look":     lookAt(change),
		"rollback": rollBack(reason),
	})
	return annotations
}

// lookAt is the command that shows the rollout that a query finds, or else the operator.
func lookAt(query string) string {
	return fmt.Sprintf("bellwether {{ range %s }}rollout get {{ . | label \"rollout\" }}{{ else }}operator get "+
		"{{ $labels.operator }}{{ end }}%s", results(fmt.Sprintf("topk(1, %s)", query), operatorAndVersion...),
		inNamespace)
}

// suspectFor is how long after its rollout has ended a version is suspected because it is new.
const suspectFor = 24 * time.Hour

// rollBack is the command that rolls back the rollout of an alert's version: the
// operator's newest one, if there is a version to go back to. If that has ended long ago, something else has
// changed, and there is none. An end before the newest start is that of another rollout: it counts as one of the last
// samples of the hub while the newest rollout has none.
func rollBack(reason string) string {
	ofOperator := func(metric string) string {
		return latest(fmt.Sprintf("%s{%s=%%[1]q,%s=%%[2]q}", metric, series.OperatorNamespace, series.Operator))
	}
	change := changeBy(series.Version, fmt.Sprintf("%s=%q", series.Kind, series.KindRollout), series.From+`!=""`)
	ended := fmt.Sprintf("(%s > %s %s)", ofOperator(series.RolloutEnd), on(operatorLabels),
		ofOperator(series.RolloutStart))
	return list(fmt.Sprintf("topk(1, %s and on (%s, %s) %s unless %s time() - %s > %s)", change, operatorLabels,
		series.Rollout, ofOperator(series.RolloutInfo), on(operatorLabels), ended, number(suspectFor.Seconds())),
		`bellwether rollout rollback {{ $x | label "rollout" }}`+inNamespace+
			` --reason "`+reason+`"`, operatorAndVersion...)
}

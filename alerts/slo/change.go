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

// hubMemory is how long the last samples of the hub count while the hub exports no
// samples: the first notification about an alert may be sent while another hub takes over.
const hubMemory = 10 * time.Minute

// selectLatest returns PromQL for the series of a selector, or for their last samples if there are none now.
func selectLatest(selector string) string {
	return fmt.Sprintf("(%[1]s or on () last_over_time(%[1]s[%[2]s]))", selector, formatDuration(hubMemory))
}

// selectChange returns the format of a selector of the changes by rollouts: by the operator of an alert, by the label
// that contains the alert's version, and by further matchers. The arguments of the format are operatorAndVersion.
func selectChange(version string, further ...string) string {
	return selectLatest(fmt.Sprintf("%s{%s=%%[1]q,%s=%%[2]q,%s}", series.RolloutChangeStart, series.OperatorNamespace,
		series.Operator, strings.Join(append([]string{version + "=%[3]q"}, further...), ",")))
}

// operatorAndVersion are the labels of an alert about a release.
var operatorAndVersion = []string{series.OperatorNamespace, series.Operator, series.Version}

const (
	// rolloutName is a template of the name of the rollout $x.
	rolloutName = `{{ $x | label "operator_namespace" }}/{{ $x | label "rollout" }}`
	// inNamespace is the end of a command about an alert's operator.
	inNamespace = " -n {{ $labels.operator_namespace }}"
	// startTime is a template of the time in the value of $x.
	startTime = `{{ ($x | value | toTime).UTC.Format "2006-01-02 15:04" }} UTC`
	// changeText is a template of the change that the rollout $x makes.
	changeText = `{{ with $x | label "from" }}{{ . }} -> {{ end }}{{ $x | label "version" }}` +
		`{{ if eq ($x | label "from") ($x | label "version") }} (same version){{ end }}` +
		`{{ if ne ($x | label "kind") "` + series.KindRollout + `" }}, {{ $x | label "kind" }}{{ end }}, started ` +
		startTime + `{{ with $x | label "approved_by" }}, approved by {{ . }}{{ end }}`
)

// addChange adds annotations about the rollout that installed the version of an alert, and
// the commands to inspect it and to roll it back; reason is the reason in the rollback
// command. The queries cost little: there is one series for each version of an operator, and
// there are few alerts about releases. An alert about several versions finds no rollout.
func addChange(annotations map[string]string, reason string) map[string]string {
	change := selectChange(series.Version)
	describeRollout := func(each string) string {
		return listResults(fmt.Sprintf("topk(1, %s)", change), each, operatorAndVersion...)
	}
	rolledBack := listResults(fmt.Sprintf("topk(1, %s > scalar(max(%s)))", selectChange(series.From,
		fmt.Sprintf(`%s=~".*%s"`, series.Kind, series.KindRollback)), change),
		`; {{ $x | label "kind" }} `+rolloutName+" started "+startTime, operatorAndVersion...)
	maps.Copy(annotations, map[string]string{
		"rollout":  describeRollout(rolloutName),
		"wave":     describeRollout(`{{ $x | label "wave" }}`),
		"change":   describeRollout(changeText + rolledBack),
		"look":     buildLookCommand(change),
		"rollback": buildRollbackCommand(reason),
	})
	return annotations
}

// buildLookCommand returns a template of the command that shows the rollout
// that a query finds. If the query finds none, the command shows the operator.
func buildLookCommand(query string) string {
	return fmt.Sprintf("bellwether {{ range %s }}rollout get {{ . | label \"rollout\" }}{{ else }}operator get "+
		"{{ $labels.operator }}{{ end }}%s", formatQuery(fmt.Sprintf("topk(1, %s)", query), operatorAndVersion...),
		inNamespace)
}

// suspectFor is how long after the end of its rollout a version is suspected because it is new.
const suspectFor = 24 * time.Hour

// buildRollbackCommand returns a template of the command that rolls back the rollout of an alert's version. It is
// empty unless the rollout is the newest of the operator and there is a version to return to. It is also empty if the
// rollout ended long ago, because another change is then the likely cause. An end before the newest start belongs to
// an older rollout, and is ignored: it may be among the last samples of the hub while the newest rollout has no end.
func buildRollbackCommand(reason string) string {
	selectByOperator := func(metric string) string {
		return selectLatest(fmt.Sprintf("%s{%s=%%[1]q,%s=%%[2]q}", metric, series.OperatorNamespace, series.Operator))
	}
	change := selectChange(series.Version, fmt.Sprintf("%s=%q", series.Kind, series.KindRollout), series.From+`!=""`)
	ended := fmt.Sprintf("(%s > %s %s)", selectByOperator(series.RolloutEnd), matchOn(operatorLabels),
		selectByOperator(series.RolloutStart))
	return listResults(fmt.Sprintf("topk(1, %s and on (%s, %s) %s unless %s time() - %s > %s)", change, operatorLabels,
		series.Rollout, selectByOperator(series.RolloutInfo), matchOn(operatorLabels), ended,
		formatNumber(suspectFor.Seconds())),
		`bellwether rollout rollback {{ $x | label "rollout" }}`+inNamespace+` --reason "`+reason+`"`,
		operatorAndVersion...)
}

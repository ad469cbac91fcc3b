// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Defaults of gates, as the API documents them.
const (
	// DefaultMaxBurnRate is the threshold of the fastest page.
	DefaultMaxBurnRate = "14.4"
	// DefaultConfidence is in percent.
	DefaultConfidence = 99
	// DefaultMinSamples is how many samples a comparison needs on each side.
	DefaultMinSamples = 30
	// DefaultFailureLimit is how many measurements in a row can miss a query's threshold before the gate fails.
	DefaultFailureLimit = 2
	// MinDefaultWindow is the window of a gate in a wave with a shorter soak.
	MinDefaultWindow = 5 * time.Minute
	// MinWindow is the shortest window of a gate: two measurements.
	MinWindow = time.Minute
)

// fillGateDefaults returns the gates of a wave with every default made explicit. It does not change its argument.
func fillGateDefaults(gates []v1alpha1.Gate, soak time.Duration) []v1alpha1.Gate {
	window := metav1.Duration{Duration: max(soak, MinDefaultWindow)}
	out := slices.Clone(gates)
	for i := range out {
		out[i] = *out[i].DeepCopy()
		switch g := &out[i]; {
		case g.SLO != nil:
			g.SLO.MaxBurnRate = cmp.Or(g.SLO.MaxBurnRate, DefaultMaxBurnRate)
			g.SLO.Window = fillDefault(g.SLO.Window, window)
		case g.Baseline != nil:
			g.Baseline.Confidence = fillDefault(g.Baseline.Confidence, int32(DefaultConfidence))
			g.Baseline.MinSamples = fillDefault(g.Baseline.MinSamples, int32(DefaultMinSamples))
			g.Baseline.Window = fillDefault(g.Baseline.Window, window)
		case g.PromQL != nil:
			g.PromQL.FailureLimit = fillDefault(g.PromQL.FailureLimit, int32(DefaultFailureLimit))
			g.PromQL.Window = fillDefault(g.PromQL.Window, window)
		case g.Job != nil:
			g.Job.Timeout = fillDefault(g.Job.Timeout, metav1.Duration{Duration: DefaultJobTimeout})
		}
	}
	return out
}

// validateGates returns an error for each gate that can never pass. scope limits the data that their queries can read.
func validateGates(w v1alpha1.Wave, path *field.Path, scope slo.Scope) field.ErrorList {
	var problems field.ErrorList
	for i, g := range w.Gates {
		gatePath := path.Child("gates").Index(i)
		if n := countKinds(g); n != 1 {
			problems = append(problems, field.Invalid(gatePath, g.Name,
				"a gate needs exactly one of approval, slo, baseline, promQL and job"))
			continue
		}
		if window := GateWindow(g); window != 0 && window < MinWindow {
			problems = append(problems, field.Invalid(gatePath.Child("window"), window.String(), "must be at least 1m"))
		}
		switch {
		case g.SLO != nil && g.SLO.MaxBurnRate != "":
			problems = append(problems, validateNumber(gatePath.Child("slo", "maxBurnRate"), g.SLO.MaxBurnRate)...)
		case g.Baseline != nil && isCatchAll(w):
			problems = append(problems, field.Invalid(gatePath.Child("baseline"), g.Name,
				"the wave takes all clusters that are left, so none remains on another release to compare with"))
		case g.PromQL != nil:
			problems = append(problems, validateNumber(gatePath.Child("promQL", "threshold"), g.PromQL.Threshold)...)
			problems = append(problems, validateQuery(gatePath.Child("promQL", "query"), g, scope)...)
		case g.Job != nil:
			problems = append(problems, validateJob(gatePath.Child("job"), g.Job.JobTemplate)...)
		}
	}
	return problems
}

// countKinds returns how many kinds a gate sets. A valid gate sets exactly one kind.
func countKinds(g v1alpha1.Gate) int {
	n := 0
	for _, has := range []bool{g.Approval != nil, g.SLO != nil, g.Baseline != nil, g.PromQL != nil,
		g.Job != nil} {
		if has {
			n++
		}
	}
	return n
}

// validateNumber returns an error if the text is not a decimal number.
func validateNumber(path *field.Path, text string) field.ErrorList {
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return field.ErrorList{field.Invalid(path, text, "must be a decimal number")}
	}
	return nil
}

// tenantScope is an example of the scope that limits the gates of ManagedOperators.
var tenantScope = slo.Scope{Clusters: "a|b", Namespace: "a", OperatorNamespace: "a"}

// validateQuery rejects unknown variables, queries that do not select the new release, and queries that read data
// outside of the scope.
func validateQuery(path *field.Path, g v1alpha1.Gate, scope slo.Scope) field.ErrorList {
	text := g.PromQL.Query
	var problems field.ErrorList
	usesRelease := false
	for _, match := range variablePattern.FindAllStringSubmatch(text, -1) {
		name := match[1]
		if _, ok := variables[name]; !ok {
			allowed := strings.Join(slices.Sorted(maps.Keys(variables)), ", ")
			problems = append(problems, field.Invalid(path, match[0], "is not a variable: use one of "+allowed))
		}
		usesRelease = usesRelease || name == "clusters" || name == "release"
	}
	if len(problems) == 0 { // the expanded query is valid only if all variables are known
		window := max(GateWindow(g), MinWindow)
		example := query{ro: &v1alpha1.OperatorRollout{}, wave: "a", clusters: "a|b", release: "a",
			window: fmt.Sprintf("%.0fs", window.Seconds()), seconds: window.Seconds()}
		if _, err := slo.Restrict(example.expandVariables(text), scope); err != nil {
			problems = append(problems, field.Invalid(path, text, err.Error()))
		}
	}
	if !usesRelease {
		problems = append(problems, field.Invalid(path, text,
			"must use ${clusters} or ${release}, so that it measures the new release only"))
	}
	return problems
}

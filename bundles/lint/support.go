// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/bellwether-dev/bellwether/bundles"

// listSupportRules returns the rules about the support that the bundle declares.
func listSupportRules() []Rule {
	return []Rule{{
		ID: "support-invalid", Title: "The bundle's declaration of support cannot be used", Severity: Error,
		Check: checkSupport,
		Why: "Rollouts leave out clusters whose Kubernetes is outside of the range in the property `" +
			bundles.PropertySupport + "`, and warn after the last day of support. A value that cannot be read " +
			"has no effect, and a range that does not fit `minKubeVersion` is true on one side only.",
		Fix: "Write `endOfSupport` as a day such as `2027-06-30`, and `kubernetes.min` and `kubernetes.max` as " +
			"versions such as `1.32`. Set `kubernetes.min` to the version of `minKubeVersion`, or leave it out.",
	}}
}

// checkSupport reports a support property that is invalid or does not fit minKubeVersion.
func checkSupport(in *Input) []Finding {
	return checkProperty(in, bundles.PropertySupport, bundles.ParseSupport, checkSupportedKubernetes)
}

// checkSupportedKubernetes compares the declared range with minKubeVersion, which OLM enforces. It reports a range that
// excludes minKubeVersion, and warns about a different minimum.
func checkSupportedKubernetes(in *Input, support bundles.Support, finding findingFunc) []Finding {
	supported := support.Kubernetes
	minimum := in.Bundle.CSV.Spec.MinKubeVersion
	switch {
	case minimum == "":
		return nil
	case supported.Max != "" && bundles.CompareKubernetes(minimum, supported.Max) > 0:
		return []Finding{finding("kubernetes.max is %s, and minKubeVersion %s: no cluster fits", supported.Max,
			minimum)}
	case supported.Min != "" && bundles.CompareKubernetes(minimum, supported.Min) != 0:
		f := finding("kubernetes.min is %s, and minKubeVersion %s", supported.Min, minimum)
		f.Severity = Warning
		return []Finding{f}
	}
	return nil
}

// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/bellwether-dev/bellwether/bundles/registryv1"

// supportRules are about what the bundle says of its own support.
func supportRules() []Rule {
	return []Rule{{
		ID: "support-invalid", Title: "What the bundle says of its support cannot be used", Severity: Error,
		Check: checkSupport,
		Why: "Rollouts leave out clusters whose Kubernetes is outside of the range in the property `" +
			registryv1.PropertySupport + "`, and warn after the last day of support. A value that cannot be read " +
			"protects nobody, and a range that does not fit `minKubeVersion` is true on one side only.",
		Fix: "Write `endOfSupport` as a day such as `2027-06-30`, and `kubernetes.min` and `kubernetes.max` as " +
			"versions such as `1.32`. Set `kubernetes.min` to the version of `minKubeVersion`, or leave it out.",
	}}
}

func checkSupport(in *Input) []Finding {
	return checkProperty(in, registryv1.PropertySupport, registryv1.ParseSupport, checkSupportedKubernetes)
}

// checkSupportedKubernetes compares the range with what OLM enforces.
func checkSupportedKubernetes(in *Input, support registryv1.Support, finding newFinding) []Finding {
	supported := support.Kubernetes
	least := in.Bundle.CSV.Spec.MinKubeVersion
	switch {
	case least == "":
		return nil
	case supported.Max != "" && registryv1.CompareKubernetes(least, supported.Max) > 0:
		return []Finding{finding("kubernetes.max is %s, and minKubeVersion %s: no cluster fits", supported.Max, least)}
	case supported.Min != "" && registryv1.CompareKubernetes(least, supported.Min) != 0:
		f := finding("kubernetes.min is %s, and minKubeVersion %s", supported.Min, least)
		f.Severity = Warning
		return []Finding{f}
	}
	return nil
}

// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import "regexp"

// ServiceName is the name and namespace of a Service, as in its DNS name in the cluster.
type ServiceName struct{ Name, Namespace string }

// serviceRef matches name.namespace.svc alone, after a flag, or in a URL. A name with a variable, such as
// name.$(NAMESPACE).svc, does not match.
var serviceRef = regexp.MustCompile(`(?:^|[=/@,\s])([a-z0-9][a-z0-9-]*)\.([a-z0-9][a-z0-9-]*)\.svc(?:$|[^a-zA-Z0-9-])`)

// ServiceNames returns the Services that an argument or a variable names together with their namespaces.
func ServiceNames(text string) []ServiceName {
	var out []ServiceName
	for _, match := range serviceRef.FindAllStringSubmatch(text, -1) {
		out = append(out, ServiceName{match[1], match[2]})
	}
	return out
}

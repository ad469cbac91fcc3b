// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import "regexp"

// ServiceName is the name of a Service in the DNS of a cluster.
type ServiceName struct{ Name, Namespace string }

// serviceName is name.namespace.svc, alone, after a flag, or in a URL. A variable in it, as in name.$(NAMESPACE).svc,
// is not matched.
var serviceName = regexp.MustCompile(`(?:^|[=/@,\s])([a-z0-9][a-z0-9-]*)\.([a-z0-9][a-z0-9-]*)\.svc(?:$|[^a-zA-Z0-9-])`)

// ServiceNames returns the Services that an argument or a variable names together with a namespace.
func ServiceNames(text string) []ServiceName {
	var out []ServiceName
	for _, match := range serviceName.FindAllStringSubmatch(text, -1) {
		out = append(out, ServiceName{match[1], match[2]})
	}
	return out
}

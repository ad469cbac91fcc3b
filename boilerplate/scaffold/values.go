// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// goVersion is the Go version that the dependencies of a new operator need.
const goVersion = "1.26.0"

// requiredModules are the modules of a new operator, in the versions that this program is tested with. A test compares
// them with the go.mod of this program.
var requiredModules = []string{
	"github.com/prometheus/client_golang v1.25.0",
	"k8s.io/api v0.37.0",
	"k8s.io/apimachinery v0.37.0",
	"k8s.io/client-go v0.37.0",
	"k8s.io/utils v0.0.0-20260626114624-be93311217bd",
	"sigs.k8s.io/controller-runtime v0.25.2",
	"sigs.k8s.io/controller-tools v0.21.0",
	"sigs.k8s.io/yaml v1.6.0",
}

// values are the values for templates.
type values struct {
	Options

	Own                 bool   // the types are new
	External            bool   // the types are in another module
	OneNamespace        bool   // can be installed for one namespace; OLM v1 refuses this with a webhook
	ObservedGeneration  bool   // the status has this field
	TypesImport, Alias  string // the package of the types, and its name in other packages
	Import              string // the line that imports it, after the imports that are not of this module
	Lower, AKind        string // the kind in lower case, and with its article
	Prefix              string // the start of names of metrics
	Namespace           string // the operator's namespace in manifests
	Domain, GroupDashes string
	DisplayName         string
	Level               string // the capability level that the operator claims
	GoVersion           string
	Requires            []string
	OwnedRights         []right
}

// right is a right of the operator for objects that it creates.
type right struct{ Group, Resource, Verbs string }

// newValues returns the values for completed options.
func newValues(o Options) *values {
	r := o.newResource()
	v := &values{
		Options: o, Own: o.Types == nil, External: r.External, TypesImport: r.Path, Alias: r.ImportAlias(),
		Lower: strings.ToLower(o.Kind), AKind: "a " + o.Kind,
		Namespace: o.Name + "-system", Domain: r.Domain, GroupDashes: strings.ReplaceAll(o.Group, ".", "-"),
		DisplayName: formatTitle(o.Name, " "), Prefix: strings.ReplaceAll(o.Name, "-", "_"),
		GoVersion: goVersion, Requires: requiredModules, ObservedGeneration: true,
		Level: "Full Lifecycle", OneNamespace: !o.Cluster && !o.Webhook,
	}
	// The alias must not be used by another import, and must be a Go identifier.
	if slices.Contains([]string{"appsv1", "batchv1", "corev1", "metav1", "webhook" + o.Version}, v.Alias) ||
		!token.IsIdentifier(v.Alias) {
		v.Alias = "api" + o.Version
	}
	if strings.ContainsAny(o.Kind[:1], "AEIO") {
		v.AKind = "an " + o.Kind
	}
	const apply = "get;list;watch;create;patch"
	v.OwnedRights = []right{{"apps", "deployments", apply}, {"batch", "cronjobs", apply + ";delete"},
		{"batch", "jobs", apply}}
	v.Import = fmt.Sprintf("\n\n\t%s %q", v.Alias, v.TypesImport)
	if t := o.Types; t != nil {
		v.Level, v.ObservedGeneration = "Seamless Upgrades", t.ObservedGeneration
		v.OwnedRights = []right{{`""`, "configmaps", apply}}
	}
	if v.External {
		v.Import = fmt.Sprintf("\n\t%s %q", v.Alias, v.TypesImport)
		v.Requires = append(requiredModules[:len(requiredModules):len(requiredModules)],
			o.Types.Module+" "+o.Types.ModuleVersion)
	}
	if v.Example == "" {
		v.Example = v.newExample()
	}
	return v
}

// newExample returns the default example.
func (v *values) newExample() string {
	text := fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata:\n  name: hello\n", v.Group, v.Version, v.Kind)
	if !v.Own {
		return text + "spec: {}\n"
	}
	return text + `spec:
  image: registry.k8s.io/pause:3.10
  replicas: 1
  settings:
    - {name: GREETING, value: hello}
  backup:
    schedule: "0 3 * * *"
    command: [/pause, -v]
`
}

// formatPath returns the path of a file. The names of templates and of their folders contain VERSION, LOWER and NAME.
func (v *values) formatPath(name string) string {
	replace := strings.NewReplacer("VERSION", v.Version, "LOWER", v.Lower, "NAME", v.Name)
	return replace.Replace(strings.TrimSuffix(name, ".tmpl"))
}

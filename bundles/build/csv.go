// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

const (
	annotationExamples     = "alm-examples"
	annotationCapabilities = "capabilities"

	watchNamespace   = "WATCH_NAMESPACE"
	targetNamespaces = "metadata.annotations['olm.targetNamespaces']"
)

// startCSV takes the ClusterServiceVersion among the manifests as the base, or an empty one.
func (a *assembly) startCSV() {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	switch len(a.bases) {
	case 0:
	case 1:
		csv = a.bases[0].value
	default:
		a.problem("there are two of kind %s, %v and %v: a bundle has one, give one as the base", kindCSV, a.bases[0],
			a.bases[1])
		return
	}
	csv.TypeMeta = metav1.TypeMeta{APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion,
		Kind: operatorsv1alpha1.ClusterServiceVersionKind}
	if csv.Annotations == nil {
		csv.Annotations = map[string]string{}
	}
	csv.Status = operatorsv1alpha1.ClusterServiceVersionStatus{}
	text := a.options.Version
	if text == "" && !csv.Spec.Version.EQ(semver.Version{}) {
		text = csv.Spec.Version.String()
	}
	if text == "" {
		a.problem("the version is not known: give --version X.Y.Z")
		return
	}
	version, err := PlainVersion(text)
	if err != nil {
		a.problem("%v", err)
		return
	}
	csv.Spec.Version.Version = version
	a.csv = csv
	csv.ObjectMeta = metav1.ObjectMeta{Name: a.options.Package + ".v" + version.String(), Annotations: csv.Annotations,
		Labels: csv.Labels}
}

// deploy makes the Deployments the install strategy. Without any, those of the base stay.
func (a *assembly) deploy() {
	strategy := &a.csv.Spec.InstallStrategy
	strategy.StrategyName = operatorsv1alpha1.InstallStrategyNameDeployment
	if len(a.objects.deployments) == 0 {
		if len(a.permissions.absorbed) > 0 && len(a.bases) > 0 {
			a.problem("the roles of --service-account cannot be added to the install strategy of %v: give the "+
				"Deployments as manifests", a.bases[0])
		}
		if len(strategy.StrategySpec.DeploymentSpecs) == 0 {
			a.problem("there is no Deployment among the manifests: OLM runs an operator as Deployments")
		}
		return
	}
	if old := strategy.StrategySpec; len(old.DeploymentSpecs)+len(old.Permissions)+len(old.ClusterPermissions) > 0 {
		a.warn("%v: its install strategy, with all permissions in it, is replaced by what the other manifests say",
			a.bases[0])
	}
	spec := operatorsv1alpha1.StrategyDetailsDeployment{
		Permissions:        append(grants(a.permissions.namespaced), a.withoutRules()...),
		ClusterPermissions: grants(a.permissions.cluster),
	}
	for _, d := range a.objects.deployments {
		a.watchTargets(d)
		a.warnAboutNamespace(d)
		spec.DeploymentSpecs = append(spec.DeploymentSpecs, operatorsv1alpha1.StrategyDeploymentSpec{
			Name: d.GetName(), Spec: d.value.Spec, Label: d.GetLabels(),
		})
	}
	strategy.StrategySpec = spec
}

// watchTargets sets environment variables that name the watched namespace from OLM's annotation, and tells what they
// were.
func (a *assembly) watchTargets(d typed[appsv1.Deployment]) {
	targets := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: targetNamespaces}}
	for _, c := range d.value.Spec.Template.Spec.Containers {
		for j, e := range c.Env {
			if e.Name != watchNamespace || e.ValueFrom != nil && e.ValueFrom.FieldRef != nil &&
				e.ValueFrom.FieldRef.FieldPath == targetNamespaces {
				continue
			}
			was := fmt.Sprintf("%q", e.Value)
			switch {
			case e.ValueFrom == nil:
			case e.ValueFrom.FieldRef != nil:
				was = "the field " + e.ValueFrom.FieldRef.FieldPath
			default:
				was = "from another source"
			}
			c.Env[j] = corev1.EnvVar{Name: watchNamespace, ValueFrom: targets}
			a.warn("%v: container %s gets %s from OLM's annotation olm.targetNamespaces, which is empty for all "+
				"namespaces; in the manifests it is %s", d, c.Name, watchNamespace, was)
		}
	}
}

// warnAboutNamespace warns of a namespace that is written into the program's arguments, alone or as part of the name of
// a Service of the operator.
func (a *assembly) warnAboutNamespace(d typed[appsv1.Deployment]) {
	for _, s := range settingsOf(d.value.Spec.Template.Spec.Containers) {
		if a.namesNamespace(s) {
			a.warn("%v: container %s has %s, but the namespace is chosen at installation; take it from a fieldRef to "+
				"metadata.namespace", d, s.container, s.what)
		}
	}
}

// namesNamespace says whether a setting names the namespace of the Deployments. Where they have none, a Service of the
// operator with a namespace names one all the same, and a chart's namespace often has the name of other things.
func (a *assembly) namesNamespace(s setting) bool {
	is := s.text == a.namespace || strings.HasSuffix(s.text, "="+a.namespace)
	if a.impliedNamespace {
		is = s.value == a.namespace && strings.Contains(strings.ToLower(s.name), "namespace")
	}
	return a.namespace != "" && is || slices.ContainsFunc(bundles.ServiceNames(s.text),
		func(n bundles.ServiceName) bool {
			return n.Namespace == a.namespace || a.impliedNamespace && slices.ContainsFunc(a.objects.services,
				func(s typed[corev1.Service]) bool { return s.GetName() == n.Name })
		})
}

// setting is an argument or a variable of a container.
type setting struct {
	container, text string
	// name is that of the variable or flag, and value what it is set to; both are empty for other arguments. A flag may
	// have its value in the next argument.
	name, value string
	// what is how messages name it.
	what string
}

// settingsOf returns all arguments and variables.
func settingsOf(containers []corev1.Container) []setting {
	var out []setting
	for _, c := range containers {
		flag := ""
		for _, arg := range slices.Concat(c.Command, c.Args) {
			s := setting{container: c.Name, text: arg, what: fmt.Sprintf("the argument %q", arg)}
			if strings.HasPrefix(arg, "-") {
				var given bool
				s.name, s.value, given = strings.Cut(arg, "=")
				if flag = s.name; given {
					flag = ""
				}
			} else if flag != "" {
				s.name, s.value, flag = flag, arg, ""
			}
			out = append(out, s)
		}
		for _, e := range c.Env {
			out = append(out, setting{c.Name, e.Value, e.Name, e.Value, e.Name + "=" + e.Value})
		}
	}
	return out
}

// own lists every served version of the CRDs as owned. What a base says of them stays. OLM waits until the version of a
// CRD that is listed last is served.
func (a *assembly) own() {
	type key struct{ name, version string }
	described := map[key]operatorsv1alpha1.CRDDescription{}
	for _, d := range a.csv.Spec.CustomResourceDefinitions.Owned {
		described[key{d.Name, d.Version}] = d
	}
	var owned []operatorsv1alpha1.CRDDescription
	for _, crd := range a.objects.crds {
		for _, v := range crd.value.Spec.Versions {
			if !v.Served {
				continue
			}
			d := described[key{crd.GetName(), v.Name}]
			delete(described, key{crd.GetName(), v.Name})
			d.Name, d.Version, d.Kind = crd.GetName(), v.Name, crd.value.Spec.Names.Kind
			d = a.describedBy(d)
			d.DisplayName = cmp.Or(d.DisplayName, spaced(d.Kind))
			d.Description = cmp.Or(d.Description, schemaDescription(v))
			owned = append(owned, d)
		}
	}
	for _, d := range a.csv.Spec.CustomResourceDefinitions.Owned {
		if _, left := described[key{d.Name, d.Version}]; left {
			a.warn("the base owns CRD %s in version %s, which the manifests do not serve: it is left out", d.Name,
				d.Version)
		}
	}
	a.warnUndefined(owned)
	a.csv.Spec.CustomResourceDefinitions.Owned = owned
}

// describedBy adds to an owned kind what Options.Described says of it.
func (a *assembly) describedBy(d operatorsv1alpha1.CRDDescription) operatorsv1alpha1.CRDDescription {
	for _, by := range a.options.Described {
		if by.Kind != d.Kind || by.Version != d.Version {
			continue
		}
		d.DisplayName = cmp.Or(by.DisplayName, d.DisplayName)
		d.Description = cmp.Or(by.Description, d.Description)
		d.Resources = orSlice(by.Resources, d.Resources)
		d.SpecDescriptors = orSlice(by.SpecDescriptors, d.SpecDescriptors)
		d.StatusDescriptors = orSlice(by.StatusDescriptors, d.StatusDescriptors)
	}
	return d
}

// warnUndefined warns about described kinds that are not among the manifests.
func (a *assembly) warnUndefined(owned []operatorsv1alpha1.CRDDescription) {
	for _, by := range a.options.Described {
		same := func(d operatorsv1alpha1.CRDDescription) bool { return d.Kind == by.Kind && d.Version == by.Version }
		if !slices.ContainsFunc(owned, same) {
			a.warn("kind %s in version %s is described by markers, and no CRD among the manifests serves it: the "+
				"description is left out", by.Kind, by.Version)
		}
	}
}

func schemaDescription(v apiextensionsv1.CustomResourceDefinitionVersion) string {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return ""
	}
	return strings.Join(strings.Fields(v.Schema.OpenAPIV3Schema.Description), " ")
}

var wordStart = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// spaced writes EchoServer as Echo Server.
func spaced(kind string) string { return wordStart.ReplaceAllString(kind, "$1 $2") }

// requireExamples refuses custom resources that a Deployment names: as examples they would not exist when the operator
// looks for them, and OLM installs no custom resources.
func (a *assembly) requireExamples() {
	for _, o := range a.objects.examples {
		d, where := a.named(o.GetName())
		switch {
		case where == "":
		case a.mayLose(o):
			a.warn("%v is an example only, as --leave-out says: %s names it, and does not find it after the "+
				"installation", o, where)
		default:
			a.problem("%v: %s of %v names it, but OLM installs no custom resources. Let the operator create it or do "+
				"without it; to make an example of it knowingly, use --leave-out %s/%s", o, where, d, o.GetKind(),
				o.GetName())
		}
	}
}

// named finds the Deployment whose variable or argument is a name, alone or after a namespace or a flag.
func (a *assembly) named(name string) (typed[appsv1.Deployment], string) {
	is := func(text string) bool {
		return text == name || strings.HasSuffix(text, "="+name) || strings.HasSuffix(text, "/"+name)
	}
	for _, d := range a.objects.deployments {
		pod := d.value.Spec.Template.Spec
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			for _, e := range c.Env {
				if is(e.Value) {
					return d, "variable " + e.Name
				}
			}
			if slices.ContainsFunc(slices.Concat(c.Command, c.Args), is) {
				return d, "an argument"
			}
		}
	}
	return typed[appsv1.Deployment]{}, ""
}

// exemplify makes the custom resources the examples that consoles offer.
func (a *assembly) exemplify() {
	if len(a.objects.examples) == 0 {
		a.csv.Annotations[annotationExamples] = cmp.Or(a.csv.Annotations[annotationExamples], "[]")
		return
	}
	examples := make([]map[string]any, 0, len(a.objects.examples))
	for _, o := range a.objects.examples {
		o.SetNamespace("")
		delete(o.Object, "status")
		examples = append(examples, o.Object)
	}
	text, err := json.MarshalIndent(examples, "", "  ")
	if err != nil {
		a.problem("encode examples: %v", err)
		return
	}
	a.csv.Annotations[annotationExamples] = string(text)
}

// describe fills what people read, with what the options say, then the base, then a default.
func (a *assembly) describe() {
	spec, about := &a.csv.Spec, a.options.About
	spec.DisplayName = cmp.Or(about.DisplayName, spec.DisplayName, title(a.options.Package))
	spec.Description = cmp.Or(about.Description, spec.Description)
	spec.Provider.Name = cmp.Or(about.Provider, spec.Provider.Name)
	spec.Provider.URL = cmp.Or(about.ProviderURL, spec.Provider.URL)
	spec.Maturity = cmp.Or(about.Maturity, spec.Maturity, "alpha")
	spec.MinKubeVersion = cmp.Or(about.MinKubeVersion, spec.MinKubeVersion)
	spec.Replaces = cmp.Or(about.Replaces, spec.Replaces)
	spec.Keywords = orSlice(about.Keywords, spec.Keywords)
	spec.Maintainers = orSlice(about.Maintainers, spec.Maintainers)
	spec.Links = orSlice(about.Links, spec.Links)
	if about.Icon != nil {
		spec.Icon = []operatorsv1alpha1.Icon{*about.Icon}
	}
	a.csv.Annotations[annotationCapabilities] = cmp.Or(about.Capabilities, a.csv.Annotations[annotationCapabilities],
		"Basic Install")
	a.installModes()
}

var allModes = []operatorsv1alpha1.InstallModeType{
	operatorsv1alpha1.InstallModeTypeOwnNamespace, operatorsv1alpha1.InstallModeTypeSingleNamespace,
	operatorsv1alpha1.InstallModeTypeMultiNamespace, operatorsv1alpha1.InstallModeTypeAllNamespaces,
}

// installModes are those of the options, or of the base, or all namespaces, which is the one that always works: OLM v1
// knows no other, and a conversion webhook allows no other.
func (a *assembly) installModes() {
	supported := a.options.About.InstallModes
	for _, m := range supported {
		if !slices.Contains(allModes, m) {
			a.problem("install mode %q is none of OwnNamespace, SingleNamespace, MultiNamespace, AllNamespaces", m)
		}
	}
	if len(supported) == 0 {
		if len(a.csv.Spec.InstallModes) > 0 {
			return
		}
		supported = []operatorsv1alpha1.InstallModeType{operatorsv1alpha1.InstallModeTypeAllNamespaces}
		if len(a.permissions.namespaced) > 0 && len(a.permissions.cluster) == 0 {
			a.warn("the operator has Roles and no ClusterRole, but with the default install mode AllNamespaces OLM " +
				"grants the rules of its Roles in all namespaces: set --install-modes OwnNamespace if it needs its " +
				"own only")
		}
	}
	a.csv.Spec.InstallModes = nil
	for _, m := range allModes {
		a.csv.Spec.InstallModes = append(a.csv.Spec.InstallModes,
			operatorsv1alpha1.InstallMode{Type: m, Supported: slices.Contains(supported, m)})
	}
}

// title writes echo-operator as Echo Operator.
func title(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' })
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, " ")
}

// relateImages lists every image that the Deployments run or are told of, after those that the base lists.
func (a *assembly) relateImages() {
	spec := &a.csv.Spec
	names, images := map[string]bool{}, map[string]bool{}
	for _, r := range spec.RelatedImages {
		names[r.Name], images[r.Image] = true, true
	}
	for _, used := range usedImages(spec.InstallStrategy.StrategySpec.DeploymentSpecs) {
		if used.image == "" || images[used.image] {
			continue
		}
		name := used.names[0]
		if names[name] {
			name = used.names[1]
		}
		names[name], images[used.image] = true, true
		spec.RelatedImages = append(spec.RelatedImages, operatorsv1alpha1.RelatedImage{Name: name, Image: used.image})
		if used.container && a.csv.Annotations[registryv1.AnnotationContainerImage] == "" {
			a.csv.Annotations[registryv1.AnnotationContainerImage] = used.image
		}
	}
}

// imageUse is an image with the names it may have, the shorter one first.
type imageUse struct {
	image     string
	names     [2]string
	container bool
}

func usedImages(deployments []operatorsv1alpha1.StrategyDeploymentSpec) []imageUse {
	var out []imageUse
	for _, d := range deployments {
		pod := d.Spec.Template.Spec
		for _, c := range slices.Concat(pod.Containers, pod.InitContainers) {
			out = append(out, imageUse{c.Image, [2]string{c.Name, d.Name + "-" + c.Name}, true})
		}
		for _, c := range slices.Concat(pod.Containers, pod.InitContainers) {
			for _, e := range c.Env {
				if name, ok := strings.CutPrefix(e.Name, registryv1.RelatedImagePrefix); ok {
					name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
					out = append(out, imageUse{e.Value, [2]string{name, d.Name + "-" + name}, false})
				}
			}
		}
	}
	return out
}

// sortedKeys is for what must come out in one order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

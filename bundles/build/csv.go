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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const (
	annotationExamples     = "alm-examples"
	annotationCapabilities = "capabilities"

	watchNamespace   = "WATCH_NAMESPACE"
	targetNamespaces = "metadata.annotations['olm.targetNamespaces']"
)

// startCSV sets a.csv to the ClusterServiceVersion among the manifests, or to an empty one, with the name and version
// of the bundle and without a status. If there is a problem, it records the problem and leaves a.csv nil.
func (a *assembler) startCSV() {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	switch len(a.bases) {
	case 0: // begin with the empty ClusterServiceVersion
	case 1:
		csv = a.bases[0].value
	default:
		a.addProblem("there are two of kind %s, %v and %v: a bundle has one, give one as the base", kindCSV, a.bases[0],
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
		a.addProblem("the version is not known: give --version X.Y.Z")
		return
	}
	version, err := PlainVersion(text)
	if err != nil {
		a.addProblem("%v", err)
		return
	}
	csv.Spec.Version.Version = version
	a.csv = csv
	csv.ObjectMeta = metav1.ObjectMeta{Name: a.options.Package + ".v" + version.String(), Annotations: csv.Annotations,
		Labels: csv.Labels}
}

// setInstallStrategy replaces the install strategy by the Deployments and permissions of the manifests. Without
// Deployments, the strategy of the base stays; problems are recorded if the base has no Deployments either, and if
// roles of --service-account would have to be added to that strategy.
func (a *assembler) setInstallStrategy() {
	strategy := &a.csv.Spec.InstallStrategy
	strategy.StrategyName = operatorsv1alpha1.InstallStrategyNameDeployment
	if len(a.objects.deployments) == 0 {
		if len(a.permissions.absorbed) > 0 && len(a.bases) > 0 {
			a.addProblem("the roles of --service-account cannot be added to the install strategy of %v: give the "+
				"Deployments as manifests", a.bases[0])
		}
		if len(strategy.StrategySpec.DeploymentSpecs) == 0 {
			a.addProblem("there is no Deployment among the manifests: OLM runs an operator as Deployments")
		}
		return
	}
	if old := strategy.StrategySpec; len(old.DeploymentSpecs)+len(old.Permissions)+len(old.ClusterPermissions) > 0 {
		a.warn("%v: its install strategy, with all permissions in it, is replaced by what the other manifests say",
			a.bases[0])
	}
	spec := operatorsv1alpha1.StrategyDetailsDeployment{
		Permissions:        append(toPermissions(a.permissions.namespaced), a.listEmptyPermissions()...),
		ClusterPermissions: toPermissions(a.permissions.cluster),
	}
	for _, d := range a.objects.deployments {
		a.setWatchNamespace(d)
		a.warnAboutNamespace(d)
		spec.DeploymentSpecs = append(spec.DeploymentSpecs, operatorsv1alpha1.StrategyDeploymentSpec{
			Name: d.GetName(), Spec: d.value.Spec, Label: d.GetLabels(),
		})
	}
	strategy.StrategySpec = spec
}

// setWatchNamespace makes variables WATCH_NAMESPACE of a Deployment read OLM's annotation with the target namespaces,
// and warns about the old values. A variable that already reads the annotation stays.
func (a *assembler) setWatchNamespace(d typedObject[appsv1.Deployment]) {
	targets := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: targetNamespaces}}
	for _, c := range d.value.Spec.Template.Spec.Containers {
		for j, e := range c.Env {
			isFromOLM := e.ValueFrom != nil && e.ValueFrom.FieldRef != nil &&
				e.ValueFrom.FieldRef.FieldPath == targetNamespaces
			if e.Name != watchNamespace || isFromOLM {
				continue
			}
			oldValue := fmt.Sprintf("%q", e.Value)
			switch {
			case e.ValueFrom == nil: // the variable has a literal value
			case e.ValueFrom.FieldRef != nil:
				oldValue = "the field " + e.ValueFrom.FieldRef.FieldPath
			default:
				oldValue = "from another source"
			}
			c.Env[j] = corev1.EnvVar{Name: watchNamespace, ValueFrom: targets}
			a.warn("%v: container %s gets %s from OLM's annotation olm.targetNamespaces, which is empty for all "+
				"namespaces; in the manifests it is %s", d, c.Name, watchNamespace, oldValue)
		}
	}
}

// warnAboutNamespace warns about arguments and variables that contain a fixed namespace, alone or in the name of a
// Service of the operator.
func (a *assembler) warnAboutNamespace(d typedObject[appsv1.Deployment]) {
	for _, s := range listSettings(d.value.Spec.Template.Spec.Containers) {
		if a.hasNamespace(s) {
			a.warn("%v: container %s has %s, but the namespace is chosen at installation; take it from a fieldRef to "+
				"metadata.namespace", d, s.container, s.label)
		}
	}
}

// hasNamespace reports whether a setting contains the namespace of the Deployments, or the name and namespace of a
// Service of the operator. An implied namespace, which often equals other names in a chart, must be the value of a
// setting with "namespace" in its name.
func (a *assembler) hasNamespace(s setting) bool {
	isNamed := s.text == a.namespace || strings.HasSuffix(s.text, "="+a.namespace)
	if a.impliedNamespace {
		isNamed = s.value == a.namespace && strings.Contains(strings.ToLower(s.name), "namespace")
	}
	if a.namespace != "" && isNamed {
		return true
	}
	return slices.ContainsFunc(bundles.ServiceNames(s.text), func(n bundles.ServiceName) bool {
		isOwnService := slices.ContainsFunc(a.objects.services,
			func(s typedObject[corev1.Service]) bool { return s.GetName() == n.Name })
		return n.Namespace == a.namespace || a.impliedNamespace && isOwnService
	})
}

// setting is an argument or an environment variable of a container.
type setting struct {
	container, text string
	// name is the name of the variable or flag, and value is its value; both are empty for other arguments. A flag can
	// have its value in the next argument.
	name, value string
	// label is the text for the setting in messages.
	label string
}

// listSettings returns all arguments and variables of the containers, in their order. An argument that follows a flag
// without "=" is the value of that flag.
func listSettings(containers []corev1.Container) []setting {
	var out []setting
	for _, c := range containers {
		flag := ""
		for _, arg := range slices.Concat(c.Command, c.Args) {
			s := setting{container: c.Name, text: arg, label: fmt.Sprintf("the argument %q", arg)}
			if strings.HasPrefix(arg, "-") {
				var hasValue bool
				s.name, s.value, hasValue = strings.Cut(arg, "=")
				if flag = s.name; hasValue {
					flag = ""
				}
			} else if flag != "" {
				s.name, s.value, flag = flag, arg, ""
			}
			out = append(out, s)
		}
		for _, e := range c.Env {
			out = append(out, setting{container: c.Name, text: e.Value, name: e.Name, value: e.Value,
				label: e.Name + "=" + e.Value})
		}
	}
	return out
}

// setOwnedCRDs lists every served version of the CRDs as owned, with the descriptions of the base and of markers.
// Unserved versions are not listed, because OLM waits until the last listed version of a CRD is served.
func (a *assembler) setOwnedCRDs() {
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
			d = a.addMarkers(d)
			d.DisplayName = cmp.Or(d.DisplayName, splitKind(d.Kind))
			d.Description = cmp.Or(d.Description, readSchemaDescription(v))
			owned = append(owned, d)
		}
	}
	for _, d := range a.csv.Spec.CustomResourceDefinitions.Owned {
		// The loop above removed the served versions from described.
		if _, isUnserved := described[key{d.Name, d.Version}]; isUnserved {
			a.warn("the base owns CRD %s in version %s, which the manifests do not serve: it is left out", d.Name,
				d.Version)
		}
	}
	a.warnUndefined(owned)
	a.csv.Spec.CustomResourceDefinitions.Owned = owned
}

// addMarkers returns the description of an owned kind, with fields from Options.Described where these are set.
func (a *assembler) addMarkers(d operatorsv1alpha1.CRDDescription) operatorsv1alpha1.CRDDescription {
	for _, description := range a.options.Described {
		if description.Kind != d.Kind || description.Version != d.Version {
			continue
		}
		d.DisplayName = cmp.Or(description.DisplayName, d.DisplayName)
		d.Description = cmp.Or(description.Description, d.Description)
		d.Resources = chooseNonEmpty(description.Resources, d.Resources)
		d.SpecDescriptors = chooseNonEmpty(description.SpecDescriptors, d.SpecDescriptors)
		d.StatusDescriptors = chooseNonEmpty(description.StatusDescriptors, d.StatusDescriptors)
	}
	return d
}

// warnUndefined warns about kinds with markers that no CRD among the manifests serves.
func (a *assembler) warnUndefined(owned []operatorsv1alpha1.CRDDescription) {
	for _, description := range a.options.Described {
		isSame := func(d operatorsv1alpha1.CRDDescription) bool {
			return d.Kind == description.Kind && d.Version == description.Version
		}
		if !slices.ContainsFunc(owned, isSame) {
			a.warn("kind %s in version %s is described by markers, and no CRD among the manifests serves it: the "+
				"description is left out", description.Kind, description.Version)
		}
	}
}

// readSchemaDescription returns the description of a version's schema; empty if there is none.
func readSchemaDescription(v apiextensionsv1.CustomResourceDefinitionVersion) string {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return ""
	}
	return phrase.OneLine(v.Schema.OpenAPIV3Schema.Description)
}

var wordStart = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// splitKind converts EchoServer to Echo Server.
func splitKind(kind string) string { return wordStart.ReplaceAllString(kind, "$1 $2") }

// refuseNeededExamples records a problem for each custom resource that a Deployment refers to by name. A custom
// resource becomes an example, which OLM does not install, so the operator would not find it. If the options allow the
// loss of the custom resource, there is only a warning.
func (a *assembler) refuseNeededExamples() {
	for _, o := range a.objects.examples {
		d, place := a.findReference(o.GetName())
		switch {
		case place == "": // no Deployment needs it
		case a.canLose(o):
			a.warn("%v is an example only, as --leave-out says: %s names it, and does not find it after the "+
				"installation", o, place)
		default:
			a.addProblem("%v: %s of %v names it, but OLM installs no custom resources. Let the operator create it or "+
				"do without it; to make an example of it knowingly, use --leave-out %s/%s", o, place, d, o.GetKind(),
				o.GetName())
		}
	}
}

// findReference returns the first Deployment with a variable or an argument that contains a name, alone or after a
// namespace or a flag, and a text about the place. The text is empty if there is no such Deployment.
func (a *assembler) findReference(name string) (typedObject[appsv1.Deployment], string) {
	isName := func(text string) bool {
		return text == name || strings.HasSuffix(text, "="+name) || strings.HasSuffix(text, "/"+name)
	}
	for _, d := range a.objects.deployments {
		pod := d.value.Spec.Template.Spec
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			for _, e := range c.Env {
				if isName(e.Value) {
					return d, "variable " + e.Name
				}
			}
			if slices.ContainsFunc(slices.Concat(c.Command, c.Args), isName) {
				return d, "an argument"
			}
		}
	}
	return typedObject[appsv1.Deployment]{}, ""
}

// setExamples writes the custom resources into the annotation with the examples that consoles show.
func (a *assembler) setExamples() {
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
		a.addProblem("encode examples: %v", err)
		return
	}
	a.csv.Annotations[annotationExamples] = string(text)
}

// setDescription sets the fields for people from the options, or else from the base, or else from a default.
func (a *assembler) setDescription() {
	spec, about := &a.csv.Spec, a.options.About
	spec.DisplayName = cmp.Or(about.DisplayName, spec.DisplayName, formatTitle(a.options.Package))
	spec.Description = cmp.Or(about.Description, spec.Description)
	spec.Provider.Name = cmp.Or(about.Provider, spec.Provider.Name)
	spec.Provider.URL = cmp.Or(about.ProviderURL, spec.Provider.URL)
	spec.Maturity = cmp.Or(about.Maturity, spec.Maturity, "alpha")
	spec.MinKubeVersion = cmp.Or(about.MinKubeVersion, spec.MinKubeVersion)
	spec.Replaces = cmp.Or(about.Replaces, spec.Replaces)
	spec.Keywords = chooseNonEmpty(about.Keywords, spec.Keywords)
	spec.Maintainers = chooseNonEmpty(about.Maintainers, spec.Maintainers)
	spec.Links = chooseNonEmpty(about.Links, spec.Links)
	if about.Icon != nil {
		spec.Icon = []operatorsv1alpha1.Icon{*about.Icon}
	}
	a.csv.Annotations[annotationCapabilities] = cmp.Or(about.Capabilities, a.csv.Annotations[annotationCapabilities],
		"Basic Install")
	a.setInstallModes()
}

var allModes = []operatorsv1alpha1.InstallModeType{
	operatorsv1alpha1.InstallModeTypeOwnNamespace, operatorsv1alpha1.InstallModeTypeSingleNamespace,
	operatorsv1alpha1.InstallModeTypeMultiNamespace, operatorsv1alpha1.InstallModeTypeAllNamespaces,
}

// setInstallModes sets the install modes of the options, or of the base, or else AllNamespaces. AllNamespaces is the
// mode that always works: OLM v1 supports no other mode by default, and a conversion webhook requires it.
func (a *assembler) setInstallModes() {
	supported := a.options.About.InstallModes
	for _, m := range supported {
		if !slices.Contains(allModes, m) {
			a.addProblem("install mode %q is none of OwnNamespace, SingleNamespace, MultiNamespace, AllNamespaces", m)
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

// formatTitle converts echo-operator to Echo Operator.
func formatTitle(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' })
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, " ")
}

// setRelatedImages adds every image that the Deployments run or that their variables name to the related images of the
// base. If the annotation containerImage is missing, it sets the annotation to the first added image of a container.
func (a *assembler) setRelatedImages() {
	spec := &a.csv.Spec
	names, images := map[string]bool{}, map[string]bool{}
	for _, r := range spec.RelatedImages {
		names[r.Name], images[r.Image] = true, true
	}
	for _, used := range listUsedImages(spec.InstallStrategy.StrategySpec.DeploymentSpecs) {
		if used.image == "" || images[used.image] {
			continue
		}
		name := used.names[0]
		if names[name] { // another image has the shorter name
			name = used.names[1]
		}
		names[name], images[used.image] = true, true
		spec.RelatedImages = append(spec.RelatedImages, operatorsv1alpha1.RelatedImage{Name: name, Image: used.image})
		if used.container && a.csv.Annotations[bundles.AnnotationContainerImage] == "" {
			a.csv.Annotations[bundles.AnnotationContainerImage] = used.image
		}
	}
}

// imageUse is an image with its two possible names, the shorter one first. container is true if a container runs the
// image, and false if a variable names it.
type imageUse struct {
	image     string
	names     [2]string
	container bool
}

// listUsedImages returns the images of containers, and of variables that begin with RELATED_IMAGE_. For each
// Deployment, the images of containers come first.
func listUsedImages(deployments []operatorsv1alpha1.StrategyDeploymentSpec) []imageUse {
	var out []imageUse
	for _, d := range deployments {
		pod := d.Spec.Template.Spec
		for _, c := range slices.Concat(pod.Containers, pod.InitContainers) {
			names := [2]string{c.Name, d.Name + "-" + c.Name}
			out = append(out, imageUse{image: c.Image, names: names, container: true})
		}
		for _, c := range slices.Concat(pod.Containers, pod.InitContainers) {
			for _, e := range c.Env {
				if name, ok := strings.CutPrefix(e.Name, bundles.RelatedImagePrefix); ok {
					name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
					out = append(out, imageUse{image: e.Value, names: [2]string{name, d.Name + "-" + name}})
				}
			}
		}
	}
	return out
}

// sortKeys returns the sorted keys of a map, for output that must have a fixed order.
func sortKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

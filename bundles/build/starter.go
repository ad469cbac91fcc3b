// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// ErrStarterOptions means that an option is invalid.
var ErrStarterOptions = errors.New("invalid option")

// StarterOptions describe a new operator.
type StarterOptions struct {
	// Package is the name of the operator in catalogs, a DNS label.
	Package string
	// Version has the form X.Y.Z.
	Version string
	// Group, Kind and Plural name the API of the operator. Plural can be empty.
	Group, Kind, Plural string
	// Image is the operator's image. The default is example.com/PACKAGE:VERSION, which does not exist.
	Image string
	About About
}

var kindNamePattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// complete sets the defaults and validates the options.
func (o *StarterOptions) complete() error {
	o.Plural = cmp.Or(o.Plural, strings.ToLower(o.Kind)+"s")
	o.Image = cmp.Or(o.Image, "example.com/"+o.Package+":"+o.Version)
	_, versionError := PlainVersion(o.Version)
	switch {
	case len(validation.IsDNS1123Label(o.Package)) > 0:
		return fmt.Errorf("%w: package %q is no DNS label: small letters, digits and dashes", ErrStarterOptions,
			o.Package)
	case !kindNamePattern.MatchString(o.Kind):
		return fmt.Errorf("%w: kind %q does not begin with a capital letter, or has more than letters and digits",
			ErrStarterOptions, o.Kind)
	case len(validation.IsDNS1123Subdomain(o.Group)) > 0 || !strings.Contains(o.Group, "."):
		return fmt.Errorf("%w: API group %q is no domain name, such as apps.example.com", ErrStarterOptions, o.Group)
	case versionError != nil:
		return fmt.Errorf("%w: %w", ErrStarterOptions, versionError)
	case len(validation.IsDNS1123Label(o.Plural)) > 0:
		return fmt.Errorf("%w: plural %q is not written in small letters", ErrStarterOptions, o.Plural)
	}
	return nil
}

// StarterBundle creates a bundle for a new operator. Errors wrap ErrStarterOptions, or are those of Assemble.
func StarterBundle(o StarterOptions) (*Result, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	var sources []Source
	for _, object := range o.newObjects() {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode %T: %w", object, err)
		}
		sources = append(sources, Source{Name: fmt.Sprintf("%T", object), Text: text})
	}
	return Assemble(sources, Options{Package: o.Package, Version: o.Version,
		Channels: []string{"candidate"}, About: o.About})
}

// newObjects returns all manifests of the operator.
func (o StarterOptions) newObjects() []any {
	return []any{o.newCRD(), o.newDeployment(), o.newClusterRole(), o.newClusterRoleBinding(), o.newRole(),
		o.newRoleBinding(), o.newAccount(), o.newService(), o.newExample()}
}

// newMeta returns the metadata of namespaced objects.
func (o StarterOptions) newMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.Package, Namespace: o.Package, Labels: o.newLabels()}
}

// newLabels returns the labels of the operator's objects.
func (o StarterOptions) newLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": o.Package}
}

// newCRD returns the CustomResourceDefinition of the API.
func (o StarterOptions) newCRD() *apiextensionsv1.CustomResourceDefinition {
	condition := apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"type", "status"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"type": {Type: "string", MaxLength: ptr.To[int64](316)},
			"status": {Type: "string",
				Enum: []apiextensionsv1.JSON{newJSON(`"True"`), newJSON(`"False"`), newJSON(`"Unknown"`)}},
			"reason":             {Type: "string", MaxLength: ptr.To[int64](1024)},
			"message":            {Type: "string", MaxLength: ptr.To[int64](32768)},
			"lastTransitionTime": {Type: "string", Format: "date-time"},
			"observedGeneration": {Type: "integer", Format: "int64", Minimum: ptr.To[float64](0)},
		}}
	schema := apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"spec"},
		Description: fmt.Sprintf("%s is managed by %s.", o.Kind, o.Package),
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
			"spec": {Type: "object", Description: "The wanted state.",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"replicas": {Type: "integer", Format: "int32", Minimum: ptr.To[float64](0),
						Maximum: ptr.To[float64](100), Description: "How many instances run."}}},
			"status": {Type: "object", Description: "The state that the operator last saw.",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"observedGeneration": {Type: "integer", Format: "int64"},
					"conditions": {Type: "array", XListType: ptr.To("map"), XListMapKeys: []string{"type"},
						Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition}},
				}},
		}}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Plural + "." + o.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: o.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: o.Kind, ListKind: o.Kind + "List",
				Plural: o.Plural, Singular: strings.ToLower(o.Kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{
					{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
					{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
				},
			}},
		},
	}
}

// newJSON returns a JSON value.
func newJSON(text string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(text)} }

// newDeployment returns the Deployment of the operator.
func (o StarterOptions) newDeployment() *appsv1.Deployment {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}}}
	}
	container := corev1.Container{
		Name: "manager", Image: o.Image, Args: []string{"--leader-elect"},
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
			{Name: "health", ContainerPort: 8081, Protocol: corev1.ProtocolTCP}},
		LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: o.newMeta(),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: o.newLabels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: o.newLabels()},
				Spec: corev1.PodSpec{
					ServiceAccountName: o.Package, Containers: []corev1.Container{container},
					SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				},
			},
		},
	}
}

// newClusterRole returns the rights to the API.
func (o StarterOptions) newClusterRole() *rbacv1.ClusterRole {
	group := []string{o.Group}
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Package},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: group, Resources: []string{o.Plural},
				Verbs: []string{"get", "list", "watch", "update", "patch"}},
			{APIGroups: group, Resources: []string{o.Plural + "/status"}, Verbs: []string{"get", "update", "patch"}},
			{APIGroups: group, Resources: []string{o.Plural + "/finalizers"}, Verbs: []string{"update"}},
		},
	}
}

// newRole returns the rights in the operator's namespace: leader election and events.
func (o StarterOptions) newRole() *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: o.newMeta(),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
				Verbs: []string{"create", "get", "update"}},
			{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"},
				Verbs: []string{"create", "patch"}},
		},
	}
}

// newSubjects returns the subject of the bindings, which is the operator's service account.
func (o StarterOptions) newSubjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: o.Package, Namespace: o.Package}}
}

// newClusterRoleBinding binds the ClusterRole to the operator.
func (o StarterOptions) newClusterRoleBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Package}, Subjects: o.newSubjects(),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: o.Package},
	}
}

// newRoleBinding binds the Role to the operator.
func (o StarterOptions) newRoleBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: o.newMeta(), Subjects: o.newSubjects(),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: o.Package},
	}
}

// newAccount returns the service account of the operator.
func (o StarterOptions) newAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: o.newMeta()}
}

// newService returns the Service for metrics.
func (o StarterOptions) newService() *corev1.Service {
	return &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: o.newMeta(),
		Spec: corev1.ServiceSpec{Selector: o.newLabels(), Ports: []corev1.ServicePort{
			{Name: "metrics", Port: 8080, TargetPort: intstr.FromString("metrics")}}}}
}

// newExample returns an example of the API.
func (o StarterOptions) newExample() map[string]any {
	return map[string]any{
		"apiVersion": o.Group + "/v1alpha1", "kind": o.Kind,
		"metadata": map[string]any{"name": strings.ToLower(o.Kind) + "-sample"},
		"spec":     map[string]any{"replicas": 1},
	}
}

// StarterAbout returns default descriptions of the operator, which the validators of Operator Framework require.
func StarterAbout(o StarterOptions) About {
	return About{
		DisplayName: o.Kind + " Operator", Description: fmt.Sprintf("Manages objects of kind %s.", o.Kind),
		Provider: o.Package, ProviderURL: "https://" + o.Group, Maturity: "alpha", MinKubeVersion: "1.27.0",
		Capabilities: "Basic Install", Keywords: []string{strings.ToLower(o.Kind)},
		Maintainers: []operatorsv1alpha1.Maintainer{{Name: o.Package, Email: "maintainers@" + o.Group}},
		Links:       []operatorsv1alpha1.AppLink{{Name: o.Package, URL: "https://" + o.Group}},
		Icon:        &operatorsv1alpha1.Icon{Data: icon, MediaType: "image/svg+xml"},
	}
}

// icon is a square in base64:
// <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M2 2h12v12H2z"/></svg>
const icon = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAxNiAxNiI+PHBhdGggZD0iTTIgMmgx" +
	"MnYxMkgyeiIvPjwvc3ZnPg=="

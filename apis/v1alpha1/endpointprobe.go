// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EndpointProbe probes one endpoint of an operator at an interval, or all endpoints that a selector matches. An
// EndpointProbe on a fleet cluster is run by the cluster's agent. An EndpointProbe in a cluster's namespace on the
// hub is run by the hub, from outside the cluster, and only for URLs. The results are the series of blackbox_exporter
// with the labels cluster, operator_namespace, operator, probe, target and vantage.
//
// A target that does not exist is a failure. The series of a probe end when this object is deleted. The series of a
// selected target end when the selector does not match it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=eprobe,categories=bellwether
// +kubebuilder:printcolumn:name="Operator",type=string,JSONPath=`.spec.operator.name`
// +kubebuilder:printcolumn:name="Operator namespace",type=string,JSONPath=`.spec.operator.namespace`,priority=1
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Success",type=string,JSONPath=`.status.conditions[?(@.type=="Success")].status`
// +kubebuilder:printcolumn:name="Matching",type=integer,JSONPath=`.status.selected.matching`,priority=1
// +kubebuilder:printcolumn:name="Failing",type=integer,JSONPath=`.status.selected.failing`,priority=1
// +kubebuilder:printcolumn:name="Last failure",type=string,JSONPath=`.status.lastFailure.reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Success")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EndpointProbe struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec EndpointProbeSpec `json:"spec"`
	// +optional
	Status EndpointProbeStatus `json:"status,omitempty"`
}

// EndpointProbeSpec defines what is probed, how often, and which answers are a success. Only the field of the
// target's scheme can be set: http, tcp, grpc or dns.
//
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || !has(self.interval) || duration(self.timeout) <= duration(self.interval)",message="timeout must not be longer than interval"
// +kubebuilder:validation:XValidation:rule="!has(self.maxDuration) || !has(self.timeout) || duration(self.maxDuration) <= duration(self.timeout)",message="maxDuration must not be longer than timeout"
// +kubebuilder:validation:XValidation:rule="[has(self.http), has(self.tcp), has(self.grpc), has(self.dns)].filter(x, x).size() <= 1",message="set at most one of http, tcp, grpc and dns"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.tls.caFromWebhooks) || !self.tls.caFromWebhooks || has(self.target.service)",message="caFromWebhooks needs a Service as target"
type EndpointProbeSpec struct {
	// Operator is the ManagedOperator on the hub that the endpoint belongs to. It sets the labels operator_namespace
	// and operator of the series.
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 && size(self.namespace) > 0",message="operator needs the namespace and the name of a ManagedOperator on the hub"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="operator cannot be changed: create another EndpointProbe"
	Operator OperatorReference `json:"operator"`

	// Name is the label probe of the series, so that the SLI is probe:NAME. Probes of one endpoint from several
	// places share it. Default: this object's name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="name must begin and end with a small letter or digit, with '-' and '.' between"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name cannot be changed: create another EndpointProbe"
	// +optional
	Name string `json:"name,omitempty"`

	// Target is what is probed.
	Target ProbeTarget `json:"target"`

	// Interval is the time between the starts of two probes: 5s to 10m.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('10m')",message="interval must be from 5s to 10m"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Timeout is the time limit of one probe, with all its redirects: 100ms to 30s.
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('30s')",message="timeout must be from 100ms to 30s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// MaxDuration is the maximum duration of a successful probe: a probe that takes longer fails with the reason
	// TooSlow. Default: the timeout.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="maxDuration must be positive"
	// +optional
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`

	// +optional
	HTTP *HTTPProbe `json:"http,omitempty"`
	// +optional
	TCP *TCPProbe `json:"tcp,omitempty"`
	// +optional
	GRPC *GRPCProbe `json:"grpc,omitempty"`
	// +optional
	DNS *DNSProbe `json:"dns,omitempty"`

	// TLS configures how a certificate is verified. With the schemes tcp, grpc and dns, setting it enables TLS.
	// +optional
	TLS *ProbeTLS `json:"tls,omitempty"`

	// AllowPrivate permits addresses that are private to the machine that probes, or to its cloud: loopback,
	// link-local and metadata services. Otherwise they are refused, after each name lookup and in each redirect.
	// Addresses of private networks, such as 10.0.0.0/8, are always permitted.
	// +optional
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// ProbeTarget names one endpoint, or selects objects of one kind, each of which is an endpoint. All objects are in
// the EndpointProbe's namespace.
//
// +kubebuilder:validation:XValidation:rule="[has(self.url), has(self.service), has(self.route), has(self.ingress), has(self.httpRoute)].filter(x, x).size() == 1",message="name exactly one of url, service, route, ingress and httpRoute"
type ProbeTarget struct {
	// URL is http://HOST[:PORT][/PATH], https://…, tcp://HOST:PORT,
	// grpc://HOST:PORT or dns://SERVER[:PORT].
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^((https?|grpc|dns)://[^/?#@\\\\s]+([/?][^#\\\\s]*)?|tcp://[^/?#@\\\\s]+:[0-9]+)$')",message="url must be http, https, tcp, grpc or dns, such as https://app.example.com/healthz or tcp://db.example.com:5432, without user and fragment"
	// +optional
	URL string `json:"url,omitempty"`
	// Service of the cluster.
	// +optional
	Service *ServiceTarget `json:"service,omitempty"`
	// Route of OpenShift.
	// +optional
	Route *HostTarget `json:"route,omitempty"`
	// Ingress of networking.k8s.io/v1.
	// +optional
	Ingress *HostTarget `json:"ingress,omitempty"`
	// HTTPRoute of gateway.networking.k8s.io/v1.
	// +optional
	HTTPRoute *HostTarget `json:"httpRoute,omitempty"`
}

// TargetSelector selects objects by their labels, instead of one object by its name. Each object is probed separately
// and has its own series, with its name in the label target. The SLI of the probe is bad while one of the objects
// fails. New and removed objects are recognized at once; objects that are being deleted do not match.
//
// At most 100 objects are probed, the first by name. If more match, the condition Ready is False with the
// reason TooManyTargets.
//
// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="selector needs matchLabels or matchExpressions"
type TargetSelector struct {
	// MatchLabels are labels that an object must have.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// MatchExpressions are requirements that the labels of an object must meet, as in other selectors.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`

	// MinAge is the minimum age of an object to be probed, because its endpoint needs time to start: 0s to 1h.
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="minAge must be from 0s to 1h"
	// +optional
	MinAge *metav1.Duration `json:"minAge,omitempty"`

	// Min is the minimum number of matching objects. If fewer match, the probe fails with the reason TargetNotFound,
	// as it does if a named object is missing. With 0, the probe does not fail if no object matches.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Min *int32 `json:"min,omitempty"`
}

// The limits of probes with a selector.
const (
	// MaxSelectedTargets is how many objects of a TargetSelector are probed.
	MaxSelectedTargets = 100
	// MaxFailingTargets is how many failing objects a status names.
	MaxFailingTargets = 10
)

// ServiceTarget is a port of a Service, or of each selected Service.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="set either name or selector"
// +kubebuilder:validation:XValidation:rule="!has(self.path) || !has(self.scheme) || self.scheme in ['http', 'https']",message="path is for http and https only"
type ServiceTarget struct {
	// Name of the Service.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`
	// Selector of Services, in place of name.
	// +optional
	Selector *TargetSelector `json:"selector,omitempty"`
	// Port of the Service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
	// +kubebuilder:default=http
	// +optional
	Scheme ProbeScheme `json:"scheme,omitempty"`
	// Path of the request. Default: /.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^/[^\\\\s#]*$')",message="path must begin with /, without blanks and fragment"
	// +optional
	Path string `json:"path,omitempty"`
}

// HostTarget is an object that publishes a host name, or each selected object. The scheme is https if the object
// terminates TLS for that host.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="set either name or selector"
// +kubebuilder:validation:XValidation:rule="!has(self.host) || !has(self.selector)",message="host is for an object with a name: each selected object has its own"
type HostTarget struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// Selector of objects, in place of name.
	// +optional
	Selector *TargetSelector `json:"selector,omitempty"`
	// Host is one of the object's host names. Default: the first host name.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?$')",message="host must be a DNS name without scheme and port"
	// +optional
	Host string `json:"host,omitempty"`
	// Path of the request. Default: the path of the object's first rule for the host, or else /.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^/[^\\\\s#]*$')",message="path must begin with /, without blanks and fragment"
	// +optional
	Path string `json:"path,omitempty"`
}

// HTTPProbe is a request and the expected answer. The probe reads an answer of up to 512 KiB, with json up to 64 KiB,
// and with regular expressions up to 16 Mi divided by the number of their instructions; a larger answer is a failure.
// The regular expressions of a probe may have 500 instructions in total, which is about one for each character,
// multiplied by the counts in braces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.json) || (!has(self.matches) && !has(self.notMatches))",message="json cannot be combined with matches and notMatches"
type HTTPProbe struct {
	// +kubebuilder:default=GET
	// +kubebuilder:validation:Enum=GET;HEAD;POST;OPTIONS
	// +optional
	Method string `json:"method,omitempty"`
	// Headers of the request. All users who can read this object can read them: use secretHeaders for secrets.
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	Headers map[string]string `json:"headers,omitempty"`
	// SecretHeaders are headers of the request with values from Secrets in this
	// object's namespace.
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +optional
	SecretHeaders []SecretHeader `json:"secretHeaders,omitempty"`
	// BearerToken is sent in the header Authorization, from a Secret in this
	// object's namespace.
	// +optional
	BearerToken *SecretKey `json:"bearerToken,omitempty"`
	// Body of the request.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Body string `json:"body,omitempty"`
	// Statuses are the HTTP statuses that count as success. Default: 200 to 299.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:Minimum=100
	// +kubebuilder:validation:items:Maximum=599
	// +listType=set
	// +optional
	Statuses []int32 `json:"statuses,omitempty"`
	// Matches are regular expressions (RE2). The body must match all of them.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Matches []string `json:"matches,omitempty"`
	// NotMatches are regular expressions (RE2). The body must not match any of them.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	NotMatches []string `json:"notMatches,omitempty"`
	// JSON is a CEL expression that must be true for the answer. The answer is parsed as JSON into the variable body:
	// body.status == "ok".
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	JSON string `json:"json,omitempty"`
	// HeaderMatches must all match a value of the answer's header with that name.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	HeaderMatches []HeaderMatch `json:"headerMatches,omitempty"`
	// HeaderNotMatches must not match any value of the answer's header of that
	// name. A missing header is permitted.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	HeaderNotMatches []HeaderMatch `json:"headerNotMatches,omitempty"`
	// FollowRedirects follows at most ten redirects. If it is false, list the redirect's status in statuses. A probe
	// with secretHeaders, bearerToken or a client certificate never follows redirects, so that no other server gets
	// the secrets.
	// +kubebuilder:default=true
	// +optional
	FollowRedirects *bool `json:"followRedirects,omitempty"`
}

// SecretHeader is a header with a value from a Secret.
type SecretHeader struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	Name string `json:"name"`
	// Value is a key of a Secret.
	Value SecretKey `json:"value"`
}

// SecretKey is a key of a Secret in the object's namespace. The Secret must have the label
// bellwether.dev/probe-secret: "true" for an EndpointProbe, or bellwether.dev/paging-secret: "true" for a
// PagingPolicy. The agent (for an EndpointProbe) or the hub needs the permission to get the Secret.
type SecretKey struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key in the Secret's data.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// ConfigMapKey is a key of a ConfigMap in the object's namespace. The agent needs the permission to get the
// ConfigMap, which the cluster's role view includes.
type ConfigMapKey struct {
	// Name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key in the ConfigMap's data.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// HeaderMatch is a regular expression for a header of an answer.
type HeaderMatch struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Regex is a regular expression (RE2).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Regex string `json:"regex"`
}

// TCPProbe is what is sent and expected after the connection. Without it, a connection is a success.
type TCPProbe struct {
	// Send is a line that is sent once connected.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Send string `json:"send,omitempty"`
	// Expect is a regular expression (RE2) that a line of the answer must match.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Expect string `json:"expect,omitempty"`
}

// GRPCProbe is a call of grpc.health.v1.Health/Check.
type GRPCProbe struct {
	// Service is the service whose health is requested. Default: the server as a whole.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Service string `json:"service,omitempty"`
}

// DNSProbe is a query to a DNS server.
type DNSProbe struct {
	// Query is the name to look up.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Query string `json:"query"`
	// +kubebuilder:default=A
	// +kubebuilder:validation:Enum=A;AAAA;CNAME;MX;NS;PTR;SOA;SRV;TXT
	// +optional
	Type string `json:"type,omitempty"`
	// Transport of the query; TLS needs tcp.
	// +kubebuilder:default=udp
	// +kubebuilder:validation:Enum=udp;tcp
	// +optional
	Transport string `json:"transport,omitempty"`
	// Matches is a regular expression (RE2) that one of the answer's records must match. If it is not set, any answer
	// without an error is a success.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Matches string `json:"matches,omitempty"`
}

// ProbeTLS configures how a server's certificate is verified.
//
// +kubebuilder:validation:XValidation:rule="[has(self.ca), has(self.caSecret), has(self.caConfigMap), has(self.caFromWebhooks) && self.caFromWebhooks].filter(x, x).size() <= 1",message="set only one of ca, caSecret, caConfigMap and caFromWebhooks"
type ProbeTLS struct {
	// InsecureSkipVerify accepts any certificate.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// ServerName is the name that must be in the certificate. Default: the target's host.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServerName string `json:"serverName,omitempty"`
	// CA has PEM certificates that are trusted instead of the system's certificates.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CA string `json:"ca,omitempty"`
	// CASecret is a key with such certificates in a Secret in this object's namespace.
	// +optional
	CASecret *SecretKey `json:"caSecret,omitempty"`
	// CAConfigMap is a key with such certificates in a ConfigMap in this object's namespace, such as
	// openshift-service-ca.crt of OpenShift, with the key service-ca.crt.
	// +optional
	CAConfigMap *ConfigMapKey `json:"caConfigMap,omitempty"`
	// CAFromWebhooks reads such certificates from the cluster: the caBundle of each ValidatingWebhookConfiguration,
	// MutatingWebhookConfiguration and conversion webhook of a CustomResourceDefinition that calls the probed port of
	// the Service.
	// +optional
	CAFromWebhooks bool `json:"caFromWebhooks,omitempty"`
	// ClientSecret is the name of a Secret in this object's namespace with a client certificate in the keys tls.crt
	// and tls.key. It needs the same label and permission as a SecretKey.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClientSecret string `json:"clientSecret,omitempty"`
}

// EndpointProbeStatus is what was observed. It is written when the observation changes, not for each run: the series
// have the result of each run.
type EndpointProbeStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready is True while the probe runs, and Success while it succeeds.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// URL of the resolved target. It is empty if the target has a selector.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	URL string `json:"url,omitempty"`

	// LastFailure is the newest failure with another reason than the probe before it.
	// +optional
	LastFailure *ProbeFailure `json:"lastFailure,omitempty"`

	// Selected summarizes the selected objects. It is absent if the target has no selector.
	// +optional
	Selected *SelectedTargets `json:"selected,omitempty"`
}

// SelectedTargets summarizes the probes of the objects that a selector matches.
type SelectedTargets struct {
	// Matching is how many objects match. Objects younger than minAge, and objects after the first 100 by name, are
	// not probed.
	Matching int32 `json:"matching"`
	// Failing is how many of the probed objects fail.
	Failing int32 `json:"failing"`
	// FirstFailing are the first failing objects by name, at most 10.
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +optional
	FirstFailing []FailingTarget `json:"firstFailing,omitempty"`
}

// FailingTarget is an object whose probe fails, with the reason.
type FailingTarget struct {
	// Name of the object.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// ProbeFailure has the time since which the probe fails for this reason.
	ProbeFailure `json:",inline"`
}

// ProbeFailure is why a probe failed.
type ProbeFailure struct {
	Time metav1.Time `json:"time"`
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// ProbeName returns the label probe of the series.
func (p *EndpointProbe) ProbeName() string {
	if p.Spec.Name != "" {
		return p.Spec.Name
	}
	return p.Name
}

// EndpointProbeList is a list of EndpointProbes.
//
// +kubebuilder:object:root=true
type EndpointProbeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EndpointProbe `json:"items"`
}

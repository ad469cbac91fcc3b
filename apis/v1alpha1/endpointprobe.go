// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EndpointProbe probes one endpoint of an operator at an interval. On a fleet
// cluster its agent runs the probe. In a cluster's namespace on the hub the hub
// runs it, from outside of the cluster, and only for URLs. The results are the
// series of blackbox_exporter with the labels cluster, operator_namespace,
// operator, probe and vantage.
//
// A target that does not exist is a failure. The series of a probe end only when
// this object is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=eprobe,categories=bellwether
// +kubebuilder:printcolumn:name="Operator",type=string,JSONPath=`.spec.operator.name`
// +kubebuilder:printcolumn:name="Operator namespace",type=string,JSONPath=`.spec.operator.namespace`,priority=1
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Success",type=string,JSONPath=`.status.conditions[?(@.type=="Success")].status`
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

// EndpointProbeSpec says what is probed, how often, and which answer is a success.
// Of http, tcp, grpc and dns only the one of the target's scheme can be set.
//
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || !has(self.interval) || duration(self.timeout) <= duration(self.interval)",message="timeout must not be longer than interval"
// +kubebuilder:validation:XValidation:rule="[has(self.http), has(self.tcp), has(self.grpc), has(self.dns)].filter(x, x).size() <= 1",message="at most one of http, tcp, grpc and dns can be asked"
type EndpointProbeSpec struct {
	// Operator is the ManagedOperator on the hub that the endpoint belongs to: the
	// labels operator_namespace and operator of the series.
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 && size(self.namespace) > 0",message="operator needs the namespace and the name of a ManagedOperator on the hub"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="operator cannot be changed: create another EndpointProbe"
	Operator OperatorReference `json:"operator"`

	// Name is the label probe of the series, so that the SLI is probe:NAME. Probes
	// of one endpoint from several places share it. Default: this object's name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="name must begin and end with a small letter or digit, with '-' and '.' between"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name cannot be changed: create another EndpointProbe"
	// +optional
	Name string `json:"name,omitempty"`

	// Target is what is probed.
	Target ProbeTarget `json:"target"`

	// Interval between the beginnings of two probes: 5s to 10m.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('10m')",message="interval must be from 5s to 10m"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Timeout of one probe, with all its redirects: 100ms to 30s.
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('30s')",message="timeout must be from 100ms to 30s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// +optional
	HTTP *HTTPProbe `json:"http,omitempty"`
	// +optional
	TCP *TCPProbe `json:"tcp,omitempty"`
	// +optional
	GRPC *GRPCProbe `json:"grpc,omitempty"`
	// +optional
	DNS *DNSProbe `json:"dns,omitempty"`

	// TLS says how a certificate is judged. With the schemes tcp, grpc and dns its
	// presence switches TLS on.
	// +optional
	TLS *ProbeTLS `json:"tls,omitempty"`

	// AllowPrivate permits addresses that are private to the machine that probes,
	// or to its cloud: loopback, link-local and metadata services. They are
	// refused otherwise, after each look-up of a name and in each redirect.
	// Addresses of private networks, such as 10.0.0.0/8, are always permitted.
	// +optional
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// ProbeTarget names one endpoint. All objects are in the EndpointProbe's own
// namespace.
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

// ServiceTarget is a port of a Service.
//
// +kubebuilder:validation:XValidation:rule="!has(self.path) || !has(self.scheme) || self.scheme in ['http', 'https']",message="path is for http and https only"
type ServiceTarget struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Port of the Service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
	// +kubebuilder:default=http
	// +optional
	Scheme ProbeScheme `json:"scheme,omitempty"`
	// Path that is asked for. Default: /.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^/[^\\\\s#]*$')",message="path must begin with /, without blanks and fragment"
	// +optional
	Path string `json:"path,omitempty"`
}

// HostTarget is an object that publishes a host name. Its scheme is https where
// the object terminates TLS for that host.
type HostTarget struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Host is one of the object's host names. Default: the first one.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?$')",message="host must be a DNS name without scheme and port"
	// +optional
	Host string `json:"host,omitempty"`
	// Path that is asked for. Default: that of the object's first rule for the
	// host, else /.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^/[^\\\\s#]*$')",message="path must begin with /, without blanks and fragment"
	// +optional
	Path string `json:"path,omitempty"`
}

// HTTPProbe is a request and the answer that is good. An answer is read up to
// 512 KiB; more is a failure.
type HTTPProbe struct {
	// +kubebuilder:default=GET
	// +kubebuilder:validation:Enum=GET;HEAD;POST;OPTIONS
	// +optional
	Method string `json:"method,omitempty"`
	// Headers of the request. They are seen by whoever reads this object: put no
	// secrets here.
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	Headers map[string]string `json:"headers,omitempty"`
	// Body of the request.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Body string `json:"body,omitempty"`
	// Statuses that are good. Default: 200 to 299.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:Minimum=100
	// +kubebuilder:validation:items:Maximum=599
	// +listType=set
	// +optional
	Statuses []int32 `json:"statuses,omitempty"`
	// Matches are regular expressions (RE2) that the body must all match.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Matches []string `json:"matches,omitempty"`
	// NotMatches are regular expressions (RE2) none of which the body may match.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	NotMatches []string `json:"notMatches,omitempty"`
	// FollowRedirects, ten at most. Where off, list the redirect's status in
	// statuses.
	// +kubebuilder:default=true
	// +optional
	FollowRedirects *bool `json:"followRedirects,omitempty"`
}

// TCPProbe is a conversation. Without it a connection is enough.
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
	// Service that is asked about. Default: the server as a whole.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Service string `json:"service,omitempty"`
}

// DNSProbe is a question to a DNS server.
type DNSProbe struct {
	// Query is the name that is asked for.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Query string `json:"query"`
	// +kubebuilder:default=A
	// +kubebuilder:validation:Enum=A;AAAA;CNAME;MX;NS;PTR;SOA;SRV;TXT
	// +optional
	Type string `json:"type,omitempty"`
	// Transport of the question; TLS needs tcp.
	// +kubebuilder:default=udp
	// +kubebuilder:validation:Enum=udp;tcp
	// +optional
	Transport string `json:"transport,omitempty"`
	// Matches is a regular expression (RE2) that one of the answer's records must
	// match. Without it any answer without an error is good.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Matches string `json:"matches,omitempty"`
}

// ProbeTLS says how a server's certificate is judged.
type ProbeTLS struct {
	// InsecureSkipVerify accepts any certificate.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// ServerName is expected in the certificate. Default: the target's host.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServerName string `json:"serverName,omitempty"`
	// CA holds PEM certificates that are trusted in place of the system's.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CA string `json:"ca,omitempty"`
}

// EndpointProbeStatus is what was seen. It is written when what is seen changes,
// and not for each probe: the series tell of those.
type EndpointProbeStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready is True while the probe runs, and Success while it
	// succeeds.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// URL is what the target came to.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	URL string `json:"url,omitempty"`

	// LastFailure is the newest failure whose reason was not that of the probe
	// before it.
	// +optional
	LastFailure *ProbeFailure `json:"lastFailure,omitempty"`
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

// ProbeName is the label probe of the series.
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

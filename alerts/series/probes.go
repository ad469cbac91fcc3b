// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series

// Series of whoever runs probes, about that itself.
const (
	// ProbesRun counts the endpoints that a process probes.
	ProbesRun = "bellwether_probes"
	// ProbeRunsTotal counts runs by ProbeResult.
	ProbeRunsTotal = "bellwether_probe_runs_total"
	// ProbeLateness is a histogram of how long after its time a run began, in seconds.
	ProbeLateness = "bellwether_probe_lateness_seconds"
)

// Counters of each probe, with Cluster, OperatorNamespace, Operator, Probe, Target
// and Vantage: how many runs ended, and how many of them were a success.
const (
	ProbeAttempts  = "bellwether_probe_attempts_total"
	ProbeSuccesses = "bellwether_probe_successes_total"
)

// Labels of probes' series.
const (
	// ProbePhase is a part of an HTTP request: resolve, connect, tls, processing or transfer.
	ProbePhase = "phase"
	// ProbeTLSVersion is a version of TLS.
	ProbeTLSVersion = "version"
	// ProbeServingStatus is what a gRPC server says of its health.
	ProbeServingStatus = "serving_status"
	// ProbeResult is how a run ended: success or failure.
	ProbeResult = "result"
)

// Probed returns the series of each probe, which also carry Cluster. Those of
// blackbox_exporter whose labels come from the server, such as a certificate's
// subject, are left out: a server could make as many series as it likes.
func Probed() []Series {
	of := func(name, help string, own ...string) Series {
		return Series{Name: name, Type: "gauge", Labels: append(OfOperator(Probe, Target, Vantage), own...), Help: help}
	}
	return []Series{
		of(ProbeSuccess, "Whether the probe succeeded."),
		{Name: ProbeAttempts, Type: "counter", Labels: OfOperator(Probe, Target, Vantage),
			Help: "Runs of the probe that ended, since the process that runs it started."},
		{Name: ProbeSuccesses, Type: "counter", Labels: OfOperator(Probe, Target, Vantage),
			Help: "Runs of the probe that succeeded, since the process that runs it started."},
		of(ProbeDuration, "How long the probe took, in seconds."),
		of(ProbeInterval, "How long after each other runs of the probe begin, in seconds."),
		of(ProbeHTTPStatusCode, "Status of the HTTP answer; 0 where there was none."),
		of(ProbeHTTPDuration, "Duration of the HTTP request by phase, over all redirects, in seconds.", ProbePhase),
		of(ProbeHTTPRedirects, "Redirects that were followed."),
		of(ProbeHTTPContentLength, "Length of the HTTP answer as the server says; -1 where it does not."),
		of(ProbeHTTPUncompressed, "Bytes that were read of the HTTP answer's body."),
		of(ProbeHTTPSSL, "Whether the final HTTP answer came over TLS."),
		of(ProbeHTTPVersion, "Version of HTTP of the answer."),
		of(ProbeFailedDueToRegex, "Whether the probe failed because the answer does not match."),
		of(ProbeFailedDueToCEL, "Whether the probe failed because the CEL expression is not true for the answer."),
		of(ProbeDNSLookupTime, "How long the look-up of the target's name took, in seconds."),
		of(ProbeIPProtocol, "Version of IP that was used: 4 or 6; 0 where there was no address."),
		of(ProbeSSLEarliestExpiry, "When the first certificate that the server sent expires, in Unix time."),
		of(ProbeSSLChainExpiry, "When the last verified chain expires, in Unix time."),
		of(ProbeTLSVersionInfo, "1, with the version of TLS.", ProbeTLSVersion),
		of(ProbeGRPCStatusCode, "Status code of the gRPC answer."),
		of(ProbeGRPCHealthResponse, "1 for what the gRPC server says of its health.", ProbeServingStatus),
	}
}

// Prober returns the series of whoever runs probes.
func Prober() []Series {
	return []Series{
		{Name: ProbesRun, Type: "gauge", Help: "Endpoints that are probed here."},
		{Name: ProbeRunsTotal, Type: "counter", Labels: []string{ProbeResult},
			Help: "Probes that were run, by their result: success or failure."},
		{Name: ProbeLateness, Type: "histogram", Help: "How long after its time a probe began, in seconds."},
	}
}

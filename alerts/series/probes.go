// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series

// Series that a process which runs probes exports about itself.
const (
	// ProbesRun counts the endpoints that a process probes.
	ProbesRun = "bellwether_probes"
	// ProbeRunsTotal counts runs by ProbeResult.
	ProbeRunsTotal = "bellwether_probe_runs_total"
	// ProbeLateness is a histogram of the delay of a run's start, in seconds.
	ProbeLateness = "bellwether_probe_lateness_seconds"
)

// Counters of each probe, with Cluster, OperatorNamespace, Operator, Probe,
// Target and Vantage: the number of runs that ended, and of runs that succeeded.
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
	// ProbeServingStatus is the health that a gRPC server reports.
	ProbeServingStatus = "serving_status"
	// ProbeResult is the result of a run: success or failure.
	ProbeResult = "result"
)

// Probed returns the series of each probe, which also have Cluster. Series of blackbox_exporter with labels
// from the server, such as a certificate's subject, are left out: a server could create any number of series.
func Probed() []Series {
	newGauge := func(name, help string, own ...string) Series {
		return Series{Name: name, Type: "gauge", Labels: append(OfOperator(Probe, Target, Vantage), own...), Help: help}
	}
	return []Series{
		newGauge(ProbeSuccess, "Whether the probe succeeded."),
		{Name: ProbeAttempts, Type: "counter", Labels: OfOperator(Probe, Target, Vantage),
			Help: "Runs of the probe that ended, since the process that runs it started."},
		{Name: ProbeSuccesses, Type: "counter", Labels: OfOperator(Probe, Target, Vantage),
			Help: "Runs of the probe that succeeded, since the process that runs it started."},
		newGauge(ProbeDuration, "How long the probe took, in seconds."),
		newGauge(ProbeInterval, "How long after each other runs of the probe begin, in seconds."),
		newGauge(ProbeHTTPStatusCode, "Status of the HTTP answer; 0 where there was none."),
		newGauge(ProbeHTTPDuration, "Duration of the HTTP request by phase, over all redirects, in seconds.",
			ProbePhase),
		newGauge(ProbeHTTPRedirects, "Redirects that were followed."),
		newGauge(ProbeHTTPContentLength, "Length of the HTTP answer as the server says; -1 where it does not."),
		newGauge(ProbeHTTPUncompressed, "Bytes that were read of the HTTP answer's body."),
		newGauge(ProbeHTTPSSL, "Whether the final HTTP answer came over TLS."),
		newGauge(ProbeHTTPVersion, "Version of HTTP of the answer."),
		newGauge(ProbeFailedDueToRegex, "Whether the probe failed because the answer does not match."),
		newGauge(ProbeFailedDueToCEL,
			"Whether the probe failed because the CEL expression is not true for the answer."),
		newGauge(ProbeDNSLookupTime, "How long the look-up of the target's name took, in seconds."),
		newGauge(ProbeIPProtocol, "Version of IP that was used: 4 or 6; 0 where there was no address."),
		newGauge(ProbeSSLEarliestExpiry, "When the first certificate that the server sent expires, in Unix time."),
		newGauge(ProbeSSLChainExpiry, "When the last verified chain expires, in Unix time."),
		newGauge(ProbeTLSVersionInfo, "1, with the version of TLS.", ProbeTLSVersion),
		newGauge(ProbeGRPCStatusCode, "Status code of the gRPC answer."),
		newGauge(ProbeGRPCHealthResponse, "1 for what the gRPC server says of its health.", ProbeServingStatus),
	}
}

// Prober returns the series that a process which runs probes exports about itself.
func Prober() []Series {
	return []Series{
		{Name: ProbesRun, Type: "gauge", Help: "Endpoints that are probed here."},
		{Name: ProbeRunsTotal, Type: "counter", Labels: []string{ProbeResult},
			Help: "Probes that were run, by their result: success or failure."},
		{Name: ProbeLateness, Type: "histogram", Help: "How long after its time a probe began, in seconds."},
	}
}

// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// maxRedirects is how many redirects the prober follows.
const maxRedirects = 10

// facts are the values of the prober's series that explain a failure.
type facts struct {
	status int
	// codes are the statuses that the spec accepts; empty: all 2xx.
	codes       []int
	redirects   int
	regexFailed bool
	jsonFailed  bool
	// bodyBytes is the number of bytes that were read of a body, after decompression.
	bodyBytes float64
	// dnsAnswered is true if a DNS server answered.
	dnsAnswered bool
	// health is the status that a gRPC server reports; UNKNOWN if no answer was received.
	health grpc_health_v1.HealthCheckResponse_ServingStatus
}

// explainFailure returns the reason of a failure, based on the logged error, the deadline and
// the series. It never depends on the text of a message. The first step with a result wins: an
// answer explains a failure only if no error explains it.
func explainFailure(ctx context.Context, logged *errorLog, f facts) *probes.Failure {
	for _, step := range []func() *probes.Failure{
		func() *probes.Failure { return explainOwnError(logged.err) },
		func() *probes.Failure { return explainTimeout(ctx, logged.err) },
		func() *probes.Failure { return explainNetworkError(logged.err) },
		func() *probes.Failure { return explainAnswer(logged, f) },
	} {
		if failure := step(); failure != nil {
			return failure
		}
	}
	return &probes.Failure{Reason: v1alpha1.ReasonProtocolError,
		Message: cmp.Or(logged.text(), "the probe failed, and blackbox_exporter logged no reason")}
}

// explainOwnError explains the errors of this package; nil for other errors.
func explainOwnError(err error) *probes.Failure {
	var body *http.MaxBytesError
	var tooLarge tooLargeError
	switch {
	case errors.Is(err, errAddressDenied):
		return &probes.Failure{Reason: v1alpha1.ReasonAddressRefused, Message: err.Error() +
			"; spec.allowPrivate does not change that: the administrator of the process that probes denies the " +
			"address"}
	case errors.Is(err, errAddressRefused):
		return &probes.Failure{Reason: v1alpha1.ReasonAddressRefused, Message: err.Error() +
			"; set spec.allowPrivate to permit it"}
	case errors.As(err, &body):
		return &probes.Failure{Reason: v1alpha1.ReasonAnswerTooLarge, Message: tooLargeError{int(body.Limit)}.Error()}
	case errors.As(err, &tooLarge):
		return &probes.Failure{Reason: v1alpha1.ReasonAnswerTooLarge, Message: tooLarge.Error()}
	case errors.Is(err, errSpec):
		return &probes.Failure{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
	}
	return nil
}

// explainTimeout explains runs that reached their deadline. The error of such a run can be of
// another kind, so the deadline is compared too. It returns nil for other runs.
func explainTimeout(ctx context.Context, err error) *probes.Failure {
	deadline, ok := ctx.Deadline()
	isPastDeadline := ok && !time.Now().Before(deadline)
	if isPastDeadline || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return &probes.Failure{Reason: v1alpha1.ReasonTimedOut, Message: "no complete answer within spec.timeout"}
	}
	return nil
}

// explainNetworkError explains errors of DNS, TLS and connections; nil for other errors.
func explainNetworkError(err error) *probes.Failure {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		unknown     x509.UnknownAuthorityError
		name        x509.HostnameError
		invalid     x509.CertificateInvalidError
		operation   *net.OpError
	)
	switch {
	case errors.As(err, &dns):
		return &probes.Failure{Reason: v1alpha1.ReasonDNSFailed, Message: err.Error()}
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &certificate), errors.As(err, &record),
		errors.As(err, &alert),
		errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid):
		return &probes.Failure{Reason: v1alpha1.ReasonTLSFailed, Message: err.Error()}
	case errors.As(err, &operation) && operation.Op == "remote error": // an alert, such as "certificate required"
		return &probes.Failure{Reason: v1alpha1.ReasonTLSFailed, Message: err.Error()}
	case errors.As(err, &operation) && operation.Op == "dial":
		return &probes.Failure{Reason: v1alpha1.ReasonConnectFailed, Message: err.Error()}
	}
	return nil
}

// explainAnswer explains answers that do not match the spec; nil if the answer
// does not explain the failure.
func explainAnswer(logged *errorLog, f facts) *probes.Failure {
	switch {
	case f.redirects > maxRedirects:
		return &probes.Failure{Reason: v1alpha1.ReasonTooManyRedirects,
			Message: fmt.Sprintf("more than %d redirects followed", maxRedirects)}
	case f.status != 0 && !isAcceptedStatus(f):
		return &probes.Failure{Reason: v1alpha1.ReasonBadStatus,
			Message: fmt.Sprintf("the answer's status is %d %s", f.status, http.StatusText(f.status))}
	case f.regexFailed:
		return &probes.Failure{Reason: v1alpha1.ReasonBadAnswer,
			Message: "the answer does not match what the spec expects"}
	case f.jsonFailed:
		return &probes.Failure{Reason: v1alpha1.ReasonBadAnswer, Message: explainJSON(logged)}
	case f.dnsAnswered: // the server answered, so the answer is the reason
		return &probes.Failure{Reason: v1alpha1.ReasonBadAnswer, Message: logged.text()}
	case f.health != grpc_health_v1.HealthCheckResponse_UNKNOWN:
		return &probes.Failure{Reason: v1alpha1.ReasonNotServing, Message: "the server says " + f.health.String()}
	}
	return nil
}

// explainJSON explains why spec.http.json failed.
func explainJSON(logged *errorLog) string {
	if logged.err != nil {
		return logged.text()
	}
	return "the expression spec.http.json is not true for the answer"
}

// isAcceptedStatus reports whether the spec accepts the HTTP status; by
// default, all 2xx are accepted.
func isAcceptedStatus(f facts) bool {
	if len(f.codes) > 0 {
		return slices.Contains(f.codes, f.status)
	}
	return f.status >= 200 && f.status < 300
}

/** certificates.k8s.io/v1 CertificateSigningRequest (pkg/registry/certificates/certificates/strategy.go). */
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import { authenticatedGroup } from '../../../api/identity.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { dnsSubdomainProblem, pathSegmentProblem } from '../../../api/names.ts'
import {
  duplicate,
  forbidden,
  invalid,
  invalidObject,
  notSupported,
  type Problem,
  required,
} from '../../../api/problem.ts'
import { resources } from '../../../api/resources.ts'
import { problemsWith } from '../../../api/validation/metadata-validation.ts'
import { repeatedPlaces } from '../../../api/validation/repeated.ts'
import { csrProblem } from '../../../certs/csr-check.ts'
import { restrictCertificateRequest } from '../authorization/node-restriction.ts'
import { refuseTooManyRequests } from '../authorization/signer-rights.ts'
import { ageOf, humanDuration, orNone, type TableOf, tableColumns } from '../handlers/cells.ts'
import { type CreateFacts, type KindStrategy, replaceStatus, withWrittenMetadata } from '../handlers/strategy.ts'
import { refuseAdministrators, refuseOtherSigners } from './certificate-signers.ts'

const requestTable: TableOf<CertificateSigningRequest> = {
  columns: tableColumns('Name', 'Age', 'SignerName', 'Requestor', 'RequestedDuration', 'Condition'),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name ?? '',
    ageOf(metadata.creationTimestamp, nowMs),
    orNone(spec.signerName),
    spec.username ?? '',
    spec.expirationSeconds === undefined ? '<none>' : humanDuration(spec.expirationSeconds * 1000),
    verdictOf(status),
  ],
}

function verdictOf(status: CertificateSigningRequest['status']): string {
  const is = (wanted: string) => status?.conditions?.some(({ type }) => type === wanted) === true
  const verdict = is('Denied') ? 'Denied' : is('Approved') ? 'Approved' : 'Pending'
  return `${verdict}${is('Failed') ? ',Failed' : ''}${status?.certificate ? ',Issued' : ''}`
}

export const certificateSigningRequestStrategy: KindStrategy<CertificateSigningRequest> = {
  ...resources.certificatesigningrequests,
  table: requestTable,
  selectableFields: ['spec.signerName'],
  subresources: {
    status: {
      access: 'update',
      writes: 'status',
      change: (stored, wanted) => replaceStatus(withWrittenMetadata(stored, wanted), signedStatus(stored, wanted)),
    },
    approval: { access: 'update', writes: 'status', change: approvalChange },
  },
  nameProblem: pathSegmentProblem,
  // As strategy.go in pkg/registry/certificates/certificates.
  resetFields: {
    '': ['spec', 'status'],
    status: ['spec', 'status.conditions'],
    approval: ['spec', 'status.certificate'],
  },
  emptyStatus: {},
  prepareForCreate: withRequester,
  // Who reads a request relies on it: an update leaves it as it is, and is not an error.
  prepareForUpdate: (old, now) => ({ ...now, spec: old.spec }),
  validateCreate: requestProblems,
  validateUpdate: requestChangeProblems,
  async admitCreate(csr, identity, { store }) {
    refuseAdministrators(csr)
    refuseTooManyRequests(identity, (await store.list('certificatesigningrequests')).items)
    return {}
  },
  admitUpdate: (csr, needs, facts) => refuseOtherSigners(csr, facts, needs),
  nodeRestriction: {
    facts: async (_, { spec }, { commonNameOf }) => ({
      commonName: commonNameOf(Buffer.from(spec.request, 'base64').toString('utf8')),
    }),
    problem: restrictCertificateRequest,
  },
}

/** Sets the requester from the certificate or token of the request. */
function withRequester(object: CertificateSigningRequest, { requester }: CreateFacts): CertificateSigningRequest {
  const { status: _, ...rest } = object
  const { username: __, uid: ___, groups: ____, extra: _____, ...asked } = object.spec
  const groups = [...new Set([...requester.groups, authenticatedGroup])]
  const { uid, extra } = requester
  return { ...rest, spec: { ...asked, username: requester.user, ...(uid && { uid }), groups, ...(extra && { extra }) } }
}

const shortestCertificateSeconds = 600

/** allValidUsages in pkg/apis/certificates/validation/validation.go. */
const knownUsages = [
  ...['any', 'cert sign', 'client auth', 'code signing', 'content commitment', 'crl sign', 'data encipherment'],
  ...['decipher only', 'digital signature', 'email protection', 'encipher only', 'ipsec end system', 'ipsec tunnel'],
  ...['ipsec user', 'key agreement', 'key encipherment', 'microsoft sgc', 'netscape sgc', 'ocsp signing', 's/mime'],
  ...['server auth', 'signing', 'timestamping'],
]

/** ValidateSignerName in pkg/apis/core/validation/validation.go. */
function signerProblems(signerName: string): readonly Problem[] {
  const field = 'spec.signerName'
  if (signerName === '') return [required(field)]
  if (signerName === 'kubernetes.io/legacy-unknown') {
    return [invalid(field, signerName, 'the legacy signerName is not allowed via this API version')]
  }
  const [domain = '', path, ...more] = signerName.split('/')
  if (path === undefined || more.length > 0) {
    const because = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
    return [invalid(field, signerName, because)]
  }
  const because = 'should be a domain with at least two segments separated by dots'
  return [
    ...problemsWith(field, domain, dnsSubdomainProblem),
    ...(domain.includes('.') ? [] : [invalid(field, domain, because)]),
    ...problemsWith(field, path, dnsSubdomainProblem),
  ]
}

function requestProblems({ spec }: CertificateSigningRequest): readonly Problem[] {
  const { request, signerName, usages = [], expirationSeconds } = spec
  const problem = csrProblem(Buffer.from(request, 'base64').toString('latin1'))
  const repeated = repeatedPlaces(usages)
  const usageRepeated = usages.filter((_, index) => repeated.has(index))
  return [
    ...(problem === undefined ? [] : [invalid('spec.request', request, problem)]),
    ...signerProblems(signerName),
    ...usages.flatMap((usage, index) =>
      knownUsages.includes(usage) ? [] : [notSupported(`spec.usages[${index}]`, usage, knownUsages)],
    ),
    ...(usages.length === 0
      ? [required('spec.usages')]
      : usageRepeated.map((usage) => duplicate('spec.usages', usage))),
    ...(expirationSeconds !== undefined && expirationSeconds < shortestCertificateSeconds
      ? [
          invalid(
            'spec.expirationSeconds',
            expirationSeconds,
            `may not specify a duration less than ${shortestCertificateSeconds} seconds`,
          ),
        ]
      : []),
  ]
}

function requestChangeProblems(old: CertificateSigningRequest, now: CertificateSigningRequest): readonly Problem[] {
  const conditions = now.status?.conditions ?? []
  const verdicts = ['Approved', 'Denied', 'Failed']
  const had = verdicts.filter((verdict) => old.status?.conditions?.some(({ type }) => type === verdict))
  const removed = had.filter((verdict) => !conditions.some(({ type }) => type === verdict))
  return [
    ...removed.map((verdict) =>
      forbidden('status.conditions', `updates may not remove a condition of type ${JSON.stringify(verdict)}`),
    ),
    ...(old.status?.certificate && old.status.certificate !== now.status?.certificate
      ? [forbidden('status.certificate', 'updates may not modify existing certificate content')]
      : []),
    ...conditions.flatMap(({ type, status }, index) =>
      verdicts.includes(type) && status !== 'True'
        ? [notSupported(`status.conditions[${index}].status`, status, ['True'])]
        : [],
    ),
  ]
}

/** A write to `…/approval`: the conditions and the metadata, whatever else the client sends along. */
function approvalChange(present: CertificateSigningRequest, wanted: CertificateSigningRequest, now: string): AnyObject {
  const conditions = (wanted.status?.conditions ?? []).map((condition) => ({
    lastUpdateTime: now,
    lastTransitionTime: now,
    ...condition,
  }))
  const types = conditions.map(({ type }) => type)
  if (types.includes('Approved') && types.includes('Denied')) {
    const problem = forbidden('status.conditions', 'Approved and Denied conditions are mutually exclusive')
    throw invalidObject(resources.certificatesigningrequests, present.metadata.name ?? '', [problem])
  }
  return replaceStatus(withWrittenMetadata(present, wanted), { ...present.status, conditions })
}

/** A signer can neither remove nor add the verdict of an approver. */
function signedStatus(present: CertificateSigningRequest, wanted: CertificateSigningRequest) {
  const isVerdict = ({ type }: { readonly type: string }) => type === 'Approved' || type === 'Denied'
  const verdict = (present.status?.conditions ?? []).filter(isVerdict)
  const others = (wanted.status?.conditions ?? []).filter((condition) => !isVerdict(condition))
  const conditions = [...verdict, ...others]
  return { ...wanted.status, ...(conditions.length > 0 && { conditions }) }
}

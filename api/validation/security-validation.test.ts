import { test } from 'tap'
import type { PodSpec, SecurityContext } from '../pod.ts'
import { problemText } from '../problem.ts'
import { containerSecurityProblems, foreignProblems, nameProblems, podSecurityProblems } from './security-validation.ts'

test('rights are asked for in words that mean something', async (t) => {
  const ofPod = (securityContext: PodSpec['securityContext'], more: Partial<PodSpec> = {}) =>
    podSecurityProblems('spec', { containers: [], securityContext: securityContext ?? {}, ...more }).map(problemText)
  const own = (securityContext: SecurityContext) =>
    containerSecurityProblems('c', { name: 'main', securityContext }).map(problemText)
  t.same(ofPod({ runAsUser: 1000, fsGroup: 1, sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '1' }] }), [])
  t.match(ofPod({ runAsUser: -1 }), [/^spec\.securityContext\.runAsUser: Invalid/])
  const named = (...names: string[]) => ofPod({ sysctls: names.map((name) => ({ name, value: '1' })) })
  t.same(named('kernel.msgmax', 'net/ipv4/conf/eth0.1/forwarding'), [], 'the node decides whether it allows them')
  t.match(named('foo-', 'a.b.'), [
    /sysctls\[0\]\.name: Invalid value: "foo-": must have at most 253 characters and match regex \^/,
    /sysctls\[1\]\.name: Invalid value: "a\.b\."/,
  ])
  t.match(named('', 'kernel.msgmax', 'kernel/msgmax'), [
    /name: Required/,
    /sysctls\[2\]\.name: Duplicate value: "kernel\/msgmax"/,
  ])
  t.match(ofPod({ sysctls: [{ name: 'net.ipv4.tcp_rmem', value: '1' }] }, { hostNetwork: true }), [/hostNetwork/])
  t.match(ofPod({ sysctls: [{ name: 'fs.mqueue.msg_max', value: '1' }] }, { hostIPC: true }), [/hostIPC/])
  t.match(own({ seccompProfile: { type: 'Localhost', localhostProfile: '../x' } }), [
    /seccompProfile\.localhostProfile: /,
  ])
  t.match(own({ seccompProfile: { type: 'Own' } }), [/^c\.securityContext\.seccompProfile\.type: Unsupported/])
  t.match(own({ privileged: true, allowPrivilegeEscalation: false }), [/^c\.securityContext: Invalid/])
  const strict = { containers: [], securityContext: { supplementalGroupsPolicy: 'Strict' } }
  t.match(foreignProblems('spec', strict).map(problemText), [/supplementalGroupsPolicy: Forbidden/])
})

test('hosts have names, and their addresses are addresses', async (t) => {
  const problemTexts = (spec: Partial<PodSpec>) => nameProblems('spec', { containers: [], ...spec }).map(problemText)
  t.same(
    problemTexts({ hostname: 'web', subdomain: 'shop', hostAliases: [{ ip: '192.0.2.1', hostnames: ['a.b'] }] }),
    [],
  )
  t.match(problemTexts({ hostname: 'Web', hostAliases: [{ ip: 'x' }] }), [
    /^spec\.hostname: /,
    /^spec\.hostAliases\[0\]\.ip: /,
  ])
  t.match(problemTexts({ dnsPolicy: 'None' }), [/^spec\.dnsConfig\.nameservers: Required/])
  t.match(problemTexts({ dnsConfig: { nameservers: ['a'], options: [{ value: '1' }] } }), [
    /nameservers\[0\]: /,
    /options\[0\]\.name: /,
  ])
})

test('each mistake in a security context has one cause, at its field', async (t) => {
  const sysAdmin = 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN'
  const range = 'must be between 0 and 2147483647, inclusive'
  const relative = "must be a relative path without '..'"
  const cases: readonly (readonly [SecurityContext, ...string[]])[] = [
    [{ allowPrivilegeEscalation: false }],
    [{ allowPrivilegeEscalation: false, capabilities: { add: ['NET_ADMIN'] } }],
    [{ allowPrivilegeEscalation: true, capabilities: { add: ['SYS_ADMIN'] }, privileged: true }],
    [{ allowPrivilegeEscalation: false, capabilities: { add: ['NET_ADMIN', 'SYS_ADMIN'] } }],
    [{ allowPrivilegeEscalation: false, capabilities: { add: ['CAP_SYS_ADMIN'] } }, `: Invalid value: "": ${sysAdmin}`],
    [
      { allowPrivilegeEscalation: false, privileged: true },
      ': Invalid value: "": cannot set `allowPrivilegeEscalation` to false and `privileged` to true',
    ],
    [{ runAsUser: 0, runAsGroup: 2 ** 31 - 1 }],
    [
      { runAsUser: 2 ** 31, runAsGroup: -1 },
      `.runAsUser: Invalid value: 2147483648: ${range}`,
      `.runAsGroup: Invalid value: -1: ${range}`,
    ],
    [{ seccompProfile: { type: 'RuntimeDefault' } }],
    [{ seccompProfile: { type: 'Localhost', localhostProfile: 'a/b.json' } }],
    [
      { seccompProfile: { type: 'Unconfined', localhostProfile: 'a' } },
      '.seccompProfile.localhostProfile: Invalid value: "a": can only be set when `type` is Localhost',
    ],
    [
      { seccompProfile: { type: 'Localhost' } },
      '.seccompProfile.localhostProfile: Required value: must be set when `type` is Localhost',
    ],
    [
      { seccompProfile: { type: 'Localhost', localhostProfile: '/a' } },
      `.seccompProfile.localhostProfile: Invalid value: "/a": ${relative}`,
    ],
    [
      { seccompProfile: { type: 'Localhost', localhostProfile: 'a/../b' } },
      `.seccompProfile.localhostProfile: Invalid value: "a/../b": ${relative}`,
    ],
    [{ appArmorProfile: { type: 'Localhost', localhostProfile: '/a' } }],
  ]
  for (const [securityContext, ...causes] of cases) {
    t.same(
      containerSecurityProblems('c', { name: 'main', securityContext }).map(problemText),
      causes.map((cause) => `c.securityContext${cause}`),
    )
  }
  t.same(containerSecurityProblems('c', { name: 'main' }), [])
})

test('name servers and search paths are limited as in Kubernetes', async (t) => {
  const causes = (dnsConfig: PodSpec['dnsConfig'], more: Partial<PodSpec> = {}) =>
    nameProblems('spec', { containers: [], dnsConfig: dnsConfig ?? {}, ...more }).map(problemText)
  const servers = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '2001:db8::1']
  t.same(causes({ nameservers: servers.slice(1) }, { dnsPolicy: 'None' }), [])
  t.match(causes({ nameservers: servers }), [
    /^spec\.dnsConfig\.nameservers: .*: must not have more than 3 nameservers$/,
  ])
  const searches = Array.from({ length: 33 }, (_, index) => `s${index}.example`)
  t.same(causes({ searches: searches.slice(1) }), [])
  t.same(causes({ searches }), ['spec.dnsConfig.searches: Invalid value: 33: must not have more than 32 search paths'])
  t.same(causes({ searches: ['a.b.'] }), [], 'the root may be written')
  t.match(causes({ searches: ['a.b', 'a..b', 'A.'] }), [/searches\[1\]: Invalid/, /searches\[2\]: Invalid/])
  t.same(causes({ options: [{ name: 'ndots', value: '2' }] }), [])
  t.same(causes({}, { dnsPolicy: 'None' }), [
    'spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None',
  ])
  t.match(causes({}, { subdomain: 'a.b', hostAliases: [{ ip: '::1', hostnames: ['a', 'a_b'] }] }), [
    /^spec\.subdomain: Invalid/,
    /^spec\.hostAliases\[0\]\.hostnames\[1\]: Invalid/,
  ])
})

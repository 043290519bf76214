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

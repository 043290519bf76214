import { test } from 'tap'
import type { PodSpec } from '../pod.ts'
import { aContainer, aSecuredPod, eachKind, foundIn, hardened, oneOfEachKind } from './testing/checked-pods.ts'

type OfPod = NonNullable<PodSpec['securityContext']>
const ofPod = (securityContext: OfPod) => aSecuredPod({ securityContext })

test('baseline forbids invalid AppArmor profiles, in fields and in annotations', async (t) => {
  const prefix = 'container.apparmor.security.beta.kubernetes.io'
  const type = 'must not set AppArmor profile type to'
  const unconfined = { appArmorProfile: { type: 'Unconfined' } }
  t.equal(
    foundIn(aSecuredPod(oneOfEachKind(unconfined)), 'baseline'),
    `forbidden AppArmor profile (${eachKind} ${type} "Unconfined")`,
  )
  t.equal(
    foundIn(aSecuredPod({ securityContext: unconfined }, { [`${prefix}/main`]: 'unconfined' }), 'baseline'),
    `forbidden AppArmor profiles (pod and annotation ${type} "Unconfined", "${prefix}/main="unconfined"")`,
  )
  const annotations = {
    [`${prefix}/f`]: 'unknown',
    [`${prefix}/`]: 'bogus',
    [`${prefix}/a`]: '',
    [`${prefix}/b`]: 'runtime/default',
    [`${prefix}/c`]: 'localhost/',
    [`other/${prefix}/d`]: 'unconfined',
  }
  t.equal(
    foundIn(aSecuredPod({}, annotations), 'baseline'),
    `forbidden AppArmor profiles (annotations ${type} "${prefix}/="bogus"", "${prefix}/f="unknown"")`,
  )
  t.equal(foundIn(ofPod({ appArmorProfile: { type: 'RuntimeDefault' } }), 'baseline'), '')
  t.equal(foundIn(ofPod({ appArmorProfile: { type: 'Localhost', localhostProfile: 'p' } }), 'baseline'), '')
})

test('baseline allows the types of SELinux for containers, and no users and roles', async (t) => {
  const types = ['container_t', 'container_init_t', 'container_kvm_t']
  const options = (one: object) => ofPod({ seLinuxOptions: one })
  for (const type of [...types, '']) t.equal(foundIn(options({ type, level: 's0' }), 'baseline', 'v1.0'), '')
  for (const type of types) t.equal(foundIn(options({ type }), 'baseline', 'v1.31'), '')
  const text = 'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions:'
  const engine = options({ type: 'container_engine_t' })
  t.equal(foundIn(engine, 'baseline', 'v1.30'), `${text} type "container_engine_t")`)
  t.equal(foundIn(engine, 'baseline', 'v1.31'), '')
  t.equal(foundIn(options({ user: 'u' }), 'baseline'), `${text} user may not be set)`)
  t.equal(foundIn(options({ role: 'r' }), 'baseline'), `${text} role may not be set)`)
  t.equal(foundIn(options({}), 'baseline'), '')
  const both = {
    ...oneOfEachKind({ seLinuxOptions: { type: 'bar' } }),
    securityContext: { seLinuxOptions: { type: 'foo', user: 'u', role: 'r' } },
  }
  const values = 'types "bar", "foo"; user may not be set; role may not be set'
  t.equal(
    foundIn(aSecuredPod(both), 'baseline'),
    `seLinuxOptions (pod and ${eachKind} set forbidden securityContext.seLinuxOptions: ${values})`,
  )
})

test('baseline forbids another /proc, also in a user namespace', async (t) => {
  const unmasked = oneOfEachKind({ procMount: 'Unmasked' })
  const text = `procMount (${eachKind} must not set securityContext.procMount to "Unmasked")`
  t.equal(foundIn(aSecuredPod(unmasked), 'baseline'), text)
  t.equal(foundIn(aSecuredPod({ ...unmasked, hostUsers: false }), 'baseline'), text)
  t.equal(foundIn(aSecuredPod(oneOfEachKind({ procMount: 'Default' })), 'baseline'), '')
})

test('baseline forbids to turn seccomp off', async (t) => {
  const unconfined = { seccompProfile: { type: 'Unconfined' } }
  const text = 'must not set securityContext.seccompProfile.type to "Unconfined"'
  t.equal(
    foundIn(aSecuredPod({ ...oneOfEachKind(unconfined), securityContext: unconfined }), 'baseline'),
    `seccompProfile (pod and ${eachKind} ${text})`,
  )
  t.equal(foundIn(ofPod(unconfined), 'baseline', 'v1.19'), `seccompProfile (pod ${text})`)
  t.equal(foundIn(ofPod({ seccompProfile: { type: 'Localhost', localhostProfile: 'p' } }), 'baseline'), '')
})

test('until 1.18 seccomp is in annotations', async (t) => {
  const prefix = 'container.seccomp.security.alpha.kubernetes.io'
  const pod = aSecuredPod(
    { containers: [aContainer('a'), aContainer('b'), aContainer('c'), aContainer('__proto__')] },
    {
      'seccomp.security.alpha.kubernetes.io/pod': 'unconfined',
      [`${prefix}/a`]: 'docker/default',
      [`${prefix}/b`]: 'unconfined',
      [`${prefix}/c`]: 'localhost/p',
      [`${prefix}/other`]: 'unconfined',
    },
  )
  const both = `${prefix}/b="unconfined", seccomp.security.alpha.kubernetes.io/pod="unconfined"`
  t.equal(foundIn(pod, 'baseline', 'v1.18'), `seccompProfile (forbidden annotations ${both})`)
  t.equal(foundIn(pod, 'baseline', 'v1.19'), '')
  const usual = aSecuredPod({}, { 'seccomp.security.alpha.kubernetes.io/pod': 'runtime/default' })
  t.equal(foundIn(usual, 'baseline', 'v1.18'), '')
})

test('restricted requires a profile of seccomp, of the pod or of each container', async (t) => {
  const { seccompProfile: _, ...context } = hardened
  const containers = [aContainer('a', context), aContainer('b', hardened)]
  const must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
  const text = `seccompProfile (pod or container "a" ${must})`
  t.equal(foundIn(aSecuredPod({ containers }), 'restricted'), text)
  t.equal(foundIn(aSecuredPod({ containers }), 'restricted', 'v1.19'), text)
  t.equal(foundIn(aSecuredPod({ containers }), 'restricted', 'v1.18'), '')
  const securityContext = { seccompProfile: { type: 'RuntimeDefault' } }
  t.equal(foundIn(aSecuredPod({ containers, securityContext }), 'restricted'), '')
  const unconfined = aContainer('c', { ...hardened, seccompProfile: { type: 'Unconfined' } })
  t.equal(
    foundIn(aSecuredPod({ containers: [...containers, unconfined], securityContext }), 'restricted'),
    'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
  )
})

test('baseline allows safe sysctls, more of them with later versions', async (t) => {
  const sysctls = (...names: readonly string[]) => ofPod({ sysctls: names.map((name) => ({ name, value: '1' })) })
  const first = [
    ...['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies'],
    ...['net.ipv4.ping_group_range', 'net.ipv4.ip_unprivileged_port_start'],
  ]
  const later = [
    ['net.ipv4.ip_local_reserved_ports', 'v1.26', 'v1.27'],
    ['net.ipv4.tcp_keepalive_time', 'v1.28', 'v1.29'],
    ['net.ipv4.tcp_fin_timeout', 'v1.28', 'v1.29'],
    ['net.ipv4.tcp_keepalive_intvl', 'v1.28', 'v1.29'],
    ['net.ipv4.tcp_keepalive_probes', 'v1.28', 'v1.29'],
    ['net.ipv4.tcp_rmem', 'v1.31', 'v1.32'],
    ['net.ipv4.tcp_wmem', 'v1.31', 'v1.32'],
  ] as const
  for (const version of ['v1.0', 'v1.27', 'v1.29', 'latest'])
    t.equal(foundIn(sysctls(...first), 'baseline', version), '')
  for (const [name, before, since] of later) {
    t.equal(foundIn(sysctls(name), 'baseline', before), `forbidden sysctls (${name})`)
    for (const version of [since, 'latest']) t.equal(foundIn(sysctls(name), 'baseline', version), '')
  }
  t.equal(
    foundIn(sysctls('net.core.somaxconn', 'net.ipv4.tcp_rmem', 'kernel/shm_rmid_forced'), 'baseline'),
    'forbidden sysctls (net.core.somaxconn, kernel/shm_rmid_forced)',
  )
})

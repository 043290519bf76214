import { test } from 'tap'
import type { PodSpec, SecurityContext } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { ContainerSecurity } from '../../runtime/runtime.ts'
import { asksForImageUser, containerSecurity, onlyUser } from './security.ts'

function secured(own: SecurityContext, ofPod: PodSpec['securityContext'] = {}, imageUser?: string) {
  const container = { name: 'main', securityContext: own }
  const pod = aPod({ name: 'web', uid: 'u', containers: [container], spec: { securityContext: ofPod } })
  const answer = containerSecurity(pod, container, imageUser)
  const security: Partial<ContainerSecurity> = answer.ok ? answer.security : {}
  return { asks: asksForImageUser(pod, container), message: answer.ok ? undefined : answer.message, ...security }
}

test('without a profile a container has the engine’s default one, unless that is switched off', (t) => {
  const profile = (seccompDefault: boolean | undefined, securityContext = {}) => {
    const pod = aPod({ containers: [{ name: 'main', securityContext }] })
    const [container] = pod.spec.containers
    const answer = container && containerSecurity(pod, container, '', seccompDefault)
    return answer?.ok ? answer.security.seccomp : undefined
  }
  const [usual, none] = [{ kind: 'standard' }, { kind: 'none' }]
  t.same(profile(undefined), usual)
  t.same(profile(true), usual)
  t.same(profile(false), none)
  t.same(profile(true, { seccompProfile: { type: 'Unconfined' } }), none)
  t.same(profile(false, { seccompProfile: { type: 'RuntimeDefault' } }), usual)
  t.end()
})

test('the container’s security context overrides the pod’s', async (t) => {
  t.match(secured({ runAsUser: 5 }, { runAsUser: 1, runAsGroup: 2, fsGroup: 3, supplementalGroups: [4, 3] }), {
    user: '5:2',
    groups: [3, 4],
    asks: false,
  })
  t.match(secured({}), { user: undefined, privileged: false, mayGainPrivileges: true, seccomp: { kind: 'standard' } })
  t.match(secured({ runAsGroup: 7 }, {}, 'app:app'), { user: 'app:7', asks: true })
  const profile = { type: 'Localhost', localhostProfile: 'mine.json' }
  t.match(
    secured({ seccompProfile: { type: 'Unconfined' }, allowPrivilegeEscalation: false }, { appArmorProfile: profile }),
    {
      seccomp: { kind: 'none' },
      appArmor: { kind: 'own', name: 'mine.json' },
      mayGainPrivileges: false,
    },
  )
})

test('the SELinux options of the container replace those of the pod', async (t) => {
  t.match(secured({}, { seLinuxOptions: { level: 's0:c1' } }), { seLinux: { level: 's0:c1' } })
  t.match(secured({ seLinuxOptions: { type: 'a_t', user: '' } }, { seLinuxOptions: { level: 's0:c1' } }), {
    seLinux: { type: 'a_t', level: undefined, user: undefined },
  })
})

test('a container with runAsNonRoot runs as another user, or does not start', async (t) => {
  const nonRoot = { runAsNonRoot: true }
  const where = '(pod: "web_default(u)", container: main)'
  t.match(secured({ runAsUser: 0 }, nonRoot), { message: `container's runAsUser breaks non-root policy ${where}` })
  t.match(secured({ runAsUser: 1 }, nonRoot), { user: '1' })
  t.match(secured({}, nonRoot, ''), {
    asks: true,
    message: `container has runAsNonRoot and image will run as root ${where}`,
  })
  t.match(secured({}, nonRoot, 'app'), { message: /has non-numeric user \(app\), cannot verify/ })
  t.match(secured({}, nonRoot, '1000:1000'), { user: undefined })
})

test('groups, capabilities and a read-only root are set only if they are given', async (t) => {
  const plain = secured({})
  t.match(plain, { readOnlyRootFilesystem: false, asks: false })
  t.same([plain.groups, plain.addCapabilities, plain.dropCapabilities], [[], [], []])
  t.same(secured({}, { fsGroup: 3 }).groups, [3])
  const given = secured({ capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] }, readOnlyRootFilesystem: true })
  t.same([given.addCapabilities, given.dropCapabilities], [['NET_ADMIN'], ['ALL']])
  t.equal(given.readOnlyRootFilesystem, true)
})

test('a user without a group has none in its name', async (t) => {
  t.equal(secured({ runAsUser: 5 }).user, '5')
  t.equal(secured({ runAsGroup: 7 }).user, '0:7', 'the image names no user: root')
  t.equal(secured({ runAsUser: 0, runAsGroup: 0 }).user, '0:0')
})

test('the image names root as 0, whatever the number of zeros, and others by numbers that are not', async (t) => {
  const messageOf = (imageUser: string) => secured({ runAsNonRoot: true }, {}, imageUser).message
  for (const root of ['0', '000', '0:1000']) t.match(messageOf(root), /image will run as root/, root)
  for (const user of ['10', '1000', '007']) t.equal(messageOf(user), undefined, user)
  for (const name of ['app1', '1app', '0app', 'app0']) t.match(messageOf(name), /has non-numeric user/, name)
})

test('a refusal names the namespace of the pod', async (t) => {
  const container = { name: 'main', securityContext: { runAsNonRoot: true, runAsUser: 0 } }
  const pod = aPod({ name: 'web', namespace: 'shop', uid: 'u', containers: [container] })
  t.match(containerSecurity(pod, container), { message: /\(pod: "web_shop\(u\)", container: main\)$/ })
})

test('a pod has one user where all its containers state the same', async (t) => {
  const user = (ofPod: number | undefined, ...own: readonly (number | undefined)[]) => {
    const [init, ...containers] = own.map((runAsUser, index) => ({
      name: `c${index}`,
      ...(runAsUser !== undefined && { securityContext: { runAsUser } }),
    }))
    const securityContext = ofPod === undefined ? {} : { runAsUser: ofPod }
    return onlyUser(aPod({ containers, spec: { securityContext, ...(init && { initContainers: [init] }) } }))
  }
  t.equal(user(undefined, undefined, undefined), undefined)
  t.equal(user(7, undefined, undefined), 7)
  t.equal(user(undefined, 0, 0), 0)
  t.equal(user(7, 8, undefined), undefined, 'they differ')
  t.equal(user(undefined, 7, undefined), undefined, 'one does not state it')
  t.equal(user(undefined, undefined, 7), undefined)
  t.equal(user(7, 8, 8, 8), 8)
  t.equal(user(7, 8, 8, 9), undefined)
})

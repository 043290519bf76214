/** Pod Security as a user of kubectl meets it: at a real controller, with its configuration and its audit log. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { startController, temporaryFolder } from './support/fleet.ts'
import { podManifest } from './support/manifests.ts'
import { eventually } from './support/wait.ts'

const prefix = 'pod-security.kubernetes.io'
const secure = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}

test('kubectl is refused and warned of pods by the levels of their namespaces', async (t) => {
  const folder = await temporaryFolder(t)
  const podSecurity = {
    defaults: { enforce: 'baseline', 'enforce-version': 'latest' },
    exemptions: { namespaces: ['kube-system'] },
  }
  const controller = await startController(t, { dataDir: join(folder, 'controller'), settings: { podSecurity } })
  const { kubectl, tryKubectl } = controller
  let files = 0
  const inFile = async (text: string) => {
    const path = join(folder, `${++files}.json`)
    await writeFile(path, text)
    return path
  }
  const create = async (namespace: string, text: string) =>
    tryKubectl('create', '-n', namespace, '-f', await inFile(text))
  const pod = (name: string, spec: object = {}, securityContext: object = secure, container: object = {}) =>
    podManifest({ name, image: 'busybox', spec, container: { securityContext, ...container } })
  await kubectl('create', 'namespace', 'shop')
  await kubectl('label', 'namespace', 'shop', `${prefix}/enforce=restricted`)

  await t.test('each of the pods that take over a node is refused', async (t) => {
    const port = { ports: [{ containerPort: 80, hostPort: 8080 }] }
    const cases: readonly (readonly [string, string])[] = [
      [
        pod('host-path', { volumes: [{ name: 'etc', hostPath: { path: '/etc' } }] }),
        'restricted volume types (volume "etc" uses restricted volume type "hostPath")',
      ],
      [pod('host-pid', { hostPID: true }), 'host namespaces (hostPID=true)'],
      [pod('host-network', { hostNetwork: true }), 'host namespaces (hostNetwork=true)'],
      [pod('host-ipc', { hostIPC: true }), 'host namespaces (hostIPC=true)'],
      [
        pod('privileged', {}, { ...secure, allowPrivilegeEscalation: true, privileged: true }),
        'privileged (container "main" must not set securityContext.privileged=true), allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false)',
      ],
      [
        pod('capability', {}, { ...secure, capabilities: { drop: ['ALL'], add: ['SYS_PTRACE'] } }),
        'unrestricted capabilities (container "main" must not include "SYS_PTRACE" in securityContext.capabilities.add)',
      ],
      [
        pod('unconfined', {}, { ...secure, seccompProfile: { type: 'Unconfined' } }),
        'seccompProfile (container "main" must not set securityContext.seccompProfile.type to "Unconfined")',
      ],
      [pod('host-port', {}, secure, port), 'hostPort (container "main" uses hostPort 8080)'],
      [
        pod('root', {}, { ...secure, runAsNonRoot: false }),
        'runAsNonRoot != true (container "main" must not set securityContext.runAsNonRoot=false)',
      ],
    ]
    for (const [text, violations] of cases) {
      const { code, stderr } = await create('shop', text)
      const { metadata } = JSON.parse(text) as { metadata: { name: string } }
      t.equal(code, 1, metadata.name)
      const message = `pods "${metadata.name}" is forbidden: violates PodSecurity "restricted:latest": ${violations}\n`
      t.ok(stderr.endsWith(message), stderr)
    }
    t.match(await create('shop', pod('secure')), { code: 0, stderr: '' })
  })

  await t.test('a Deployment is created with a warning, and an Event names why it has no pods', async (t) => {
    const made = await tryKubectl('create', 'deployment', 'web', '--image=busybox', '-n', 'shop')
    t.match(made, {
      code: 0,
      stderr: /^Warning: would violate PodSecurity "restricted:latest": allowPrivilegeEscalation /,
    })
    const path = 'jsonpath={.items[*].message}'
    const event = await eventually('the Event', async () => {
      const text = await kubectl('get', 'events', '-n', 'shop', '--field-selector=reason=FailedCreate', '-o', path)
      return text !== '' && text
    })
    t.match(event, /pods "web-\S+" is forbidden: violates PodSecurity "restricted:latest": /)
  })

  await t.test('a namespace without labels has the default of the configuration, unless it is exempt', async (t) => {
    const refused = await create('default', pod('host-pid', { hostPID: true }))
    t.match(refused.stderr, /violates PodSecurity "baseline:latest": host namespaces \(hostPID=true\)/)
    t.match(await create('kube-system', pod('host-pid', { hostPID: true })), { code: 0, stderr: '' })
  })

  await t.test('a stricter namespace warns of its pods, and a label that is wrong is refused', async (t) => {
    await create('default', pod('plain', {}, {}))
    const enforce = (level: string) =>
      tryKubectl('label', '--overwrite', 'namespace', 'default', `${prefix}/enforce=${level}`)
    t.match(await enforce('restricted'), {
      code: 0,
      stderr:
        /^Warning: existing pods in namespace "default" violate the new PodSecurity enforce level "restricted:latest"\nWarning: plain: allowPrivilegeEscalation != false, /,
    })
    t.match(await enforce('strict'), {
      code: 1,
      stderr:
        /The Namespace "default" is invalid: metadata\.labels\[.*\/enforce\]: Invalid value: "strict": must be one of privileged, baseline, restricted/,
    })
  })

  await t.test('kubectl debug adds only a container that the namespace allows', async (t) => {
    const debug = (profile: string) =>
      tryKubectl('debug', 'secure', '-n', 'shop', '--image=busybox', `--profile=${profile}`, '--', 'true')
    t.match(await debug('sysadmin'), {
      code: 1,
      stderr: /pods "secure" is forbidden: violates PodSecurity "restricted:latest": privileged \(container "debugger-/,
    })
    t.match(await debug('restricted'), { code: 0 })
  })

  await t.test('the audit log has the policy of each pod', async (t) => {
    const annotations = await eventually('the line', async () => {
      const lines = (await readFile(join(controller.dataDir, 'audit.log'), 'utf8')).trim().split('\n')
      const events = lines.map((line) => JSON.parse(line) as { annotations?: { [key: string]: string } })
      return events.map((one) => one.annotations?.[`${prefix}/exempt`] ?? one.annotations?.[`${prefix}/enforce-policy`])
    })
    for (const wanted of ['restricted:latest', 'baseline:latest', 'namespace'])
      t.ok(annotations.includes(wanted), wanted)
  })
})

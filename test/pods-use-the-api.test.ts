/** A program in a pod uses the API with the token of its service account: kubectl, controller, agent and Docker are real. */
import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { test } from 'tap'
import { mountPoints, mountsAt, unmount } from '../agent/adapters/disk/mounts.ts'
import { volumeFolders } from '../agent/adapters/disk/volume-store.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image, removeAllContainers, runningNames } from './support/pods.ts'
import { eventually } from './support/wait.ts'

/** What client libraries do in a cluster (client-go, rest/config.go, InClusterConfig). */
const client = `
const { readFileSync } = require('node:fs')
const folder = '/var/run/secrets/kubernetes.io/serviceaccount'
const read = (name) => readFileSync(folder + '/' + name, 'utf8')
const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env
const get = (path) => new Promise((resolve) => {
  const options = { host, port, path, ca: read('ca.crt'), headers: { authorization: 'Bearer ' + read('token') } }
  const request = require('node:https').get(options, (answer) => {
    let text = ''
    answer.on('data', (data) => { text += data })
    answer.on('end', () => resolve([answer.statusCode, JSON.parse(text)]))
  })
  request.on('error', (error) => resolve([error.code, {}]))
})
const look = async () => {
  const base = '/api/v1/namespaces/' + read('namespace')
  const [code, { items = [] }] = await get(base + '/pods')
  const [other, { message }] = await get(base + '/secrets')
  console.log(code, items.map(({ metadata }) => metadata.name).join(), other, message)
  setTimeout(look, 500)
}
look()
`

/** Node.js of this machine, with its libraries: no image of it can be pulled here. */
const folders = [...new Set(['/usr', '/lib', '/lib64', dirname(process.execPath)])]
const withNode = {
  volumes: folders.map((path, index) => ({ name: `v${index}`, hostPath: { path } })),
  volumeMounts: folders.map((mountPath, index) => ({ name: `v${index}`, mountPath, readOnly: true })),
}

function manifest(name: string, command: readonly string[], spec: object = {}): string {
  const { volumes, volumeMounts } = withNode
  const containers = [{ name: 'main', image, command, volumeMounts }]
  const all = { terminationGracePeriodSeconds: 0, volumes, containers, ...spec }
  return JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop' }, spec: all })
}

const path = '/var/run/secrets/kubernetes.io/serviceaccount/token'

test('pods have the tokens of their accounts', async (t) => {
  const fleet = await joinedFleet(t, { isReachable: true })
  const { docker, controller } = fleet
  const [agent] = await fleet.startReady()
  const { kubectl, kubectlWith, tryKubectl } = controller
  const inPod = (name: string, ...command: readonly string[]) => kubectl('exec', '-n', 'shop', name, '--', ...command)
  const run = async (name: string, text: string) => {
    await kubectlWith(text, 'create', '-f', '-')
    await kubectl('wait', '-n', 'shop', '--for=condition=Ready', `pod/${name}`, '--timeout=80s')
  }
  await kubectl('create', 'namespace', 'shop')
  // Within the same second: the account of the namespace is there.
  await kubectlWith(manifest('plain', ['sleep', '1000']), 'create', '-f', '-')

  await t.test('a program lists the pods of its namespace, and nothing that no role allows', async (t) => {
    await kubectl('create', 'serviceaccount', 'reader', '-n', 'shop')
    await kubectl('create', 'role', 'reader', '--verb=list', '--resource=pods', '-n', 'shop')
    await kubectl('create', 'rolebinding', 'reader', '--role=reader', '--serviceaccount=shop:reader', '-n', 'shop')
    await run('reader', manifest('reader', [process.execPath, '-e', client], { serviceAccountName: 'reader' }))
    const forbidden =
      '403 secrets is forbidden: User "system:serviceaccount:shop:reader" cannot list resource "secrets" in API group "" in the namespace "shop"'
    await eventually('it has listed them', async () =>
      (await kubectl('logs', '-n', 'shop', 'reader')).includes(`200 plain,reader ${forbidden}\n`),
    )
    const { code, stderr } = await tryKubectl(
      'run',
      'none',
      '-n',
      'shop',
      `--image=${image}`,
      '--overrides',
      '{"spec":{"serviceAccountName":"none"}}',
    )
    t.equal(code, 1)
    t.equal(
      stderr.trim(),
      'Error from server (Forbidden): pods "none" is forbidden: error looking up service account shop/none: serviceaccount "none" not found',
    )
  })

  await t.test('the file is for the user and the group of the pod', async (t) => {
    const rights = async (name: string, securityContext: object) => {
      await run(name, manifest(name, ['sleep', '1000'], { securityContext }))
      return (await inPod(name, 'stat', '-Lc', '%a %u %g', path)).trim()
    }
    await kubectl('wait', '-n', 'shop', '--for=condition=Ready', 'pod/plain', '--timeout=80s')
    t.equal((await inPod('plain', 'stat', '-Lc', '%a %u %g', path)).trim(), '644 0 0')
    t.equal(await rights('user', { runAsUser: 1000 }), '600 1000 0')
    t.equal(await rights('group', { runAsUser: 1000, fsGroup: 2000 }), '640 1000 2000')
    t.match(await inPod('user', 'cat', path), /^[\w-]+\.[\w-]+\.[\w-]+$/, 'which it reads')
    await kubectl('delete', 'pod', 'user', 'group', '-n', 'shop', '--timeout=80s')
  })

  await t.test('a token ends with its pod', async (t) => {
    await run('short', manifest('short', ['sleep', '1000']))
    const token = await inPod('short', 'cat', path)
    // Without the certificate of the administrator.
    const whoami = () =>
      tryKubectl(
        '--kubeconfig',
        '/dev/null',
        '--server',
        controller.apiUrl,
        '--insecure-skip-tls-verify',
        '--token',
        token,
        'auth',
        'whoami',
      )
    const asked = await whoami()
    t.match(asked.stdout, /system:serviceaccount:shop:default/)
    t.match(asked.stdout, /pod-name\s+\[short\]/)
    t.match(asked.stdout, /node-name\s+\[pi-1\]/)
    await kubectl('delete', 'pod', 'short', '-n', 'shop', '--timeout=80s')
    t.match((await whoami()).stderr, /Unauthorized|must be logged in/)
  })

  await t.test(
    'pods keep their tokens without the controller: over a restart of the agent, and a power cut',
    async (t) => {
      const token = await inPod('plain', 'cat', path)
      await controller.program.stop()
      agent.kill('SIGKILL')
      await agent.ended
      const again = await fleet.startAgent()
      await again.logged('Desired pods restored from the checkpoint')
      const shown = async () => {
        const [row] = await docker.docker.listContainers({
          filters: { label: ['io.kubernetes.pod.name=plain', 'io.kubernetes.container.name=main'] },
        })
        if (row === undefined) return undefined
        const exec = await docker.docker
          .getContainer(row.Id)
          .exec({ Cmd: ['cat', path], AttachStdout: true, Tty: true })
        const chunks: Buffer[] = []
        for await (const chunk of await exec.start({ Tty: true })) chunks.push(Buffer.from(chunk as Buffer))
        return Buffer.concat(chunks).toString()
      }
      t.equal(await shown(), token)
      again.kill('SIGKILL')
      await again.ended
      await removeAllContainers(docker)
      const { memoryDirectory } = await volumeFolders(fleet.dataDir())
      for (const { path: mounted } of [...mountsAt(await mountPoints(), memoryDirectory)].reverse())
        await unmount(mounted)
      await rm(memoryDirectory, { recursive: true })
      const last = await fleet.startAgent()
      await eventually('the pods are back', async () =>
        (await runningNames(docker)).some((name) => name.includes('main_plain_')),
      )
      t.equal(await shown(), token)
      const back = await fleet.controllerAgain()
      const logs = () => back.tryKubectl('logs', '-n', 'shop', 'reader', '--tail=1')
      await eventually('and use the API again', async () => (await logs()).stdout.startsWith('200 '))
      t.equal(await last.stop(), 0)
    },
  )
})

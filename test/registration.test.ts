/** Who makes a Node, and what becomes of one that is taken away: by hand, deleted, registered again; certificates by hand. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import type { Pod } from '../api/pod.ts'
import { whyNoDockerd } from './support/dockerd.ts'
import { joinFleet, startController, temporaryFolder } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const run = promisify(execFile)

test('a Node made by hand, deleted, and registered again', { skip: whyNoDockerd() }, async (t) => {
  const { folder, docker, controller, dataDir, startAgent } = await joinedFleet(t, {
    agents: { nodeLeaseDurationSeconds: 8 },
  })
  const staticPodPath = join(folder, 'manifests')
  await mkdir(staticPodPath)
  await writeFile(join(staticPodPath, 'own.json'), podManifest({ name: 'own', image }))
  const start = (registerNode: boolean) => startAgent('pi-1', { registerNode, staticPodPath })

  const byHand = await start(false)
  await byHand.logged('Node status posted')
  t.match(
    (await controller.tryKubectl('get', 'node', 'pi-1')).stderr,
    'NotFound',
    'the agent leaves it to the administrator',
  )
  const taints = [{ key: 'bramble.dev/new', effect: 'NoSchedule' }]
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'pi-1', labels: { room: 'attic' } },
    spec: { taints },
  }
  await controller.kubectlWith(JSON.stringify(node), 'create', '-f', '-')
  await controller.nodesReady('pi-1')
  await byHand.stop()

  const agent = await start(true)
  await agent.logged('Node status posted')
  await controller.nodesReady('pi-1')
  const kept = await eventually('it has the labels of its agent', async () => {
    const present = JSON.parse(await controller.kubectl('get', 'node', 'pi-1', '-o', 'json'))
    return present.metadata.labels['kubernetes.io/os'] === 'linux' && present
  })
  t.match(kept, { metadata: { labels: { room: 'attic' } }, spec: { taints } })
  await controller.kubectl('taint', 'node', 'pi-1', 'bramble.dev/new-')
  await controller.kubectlWith(podManifest({ name: 'web', image }), 'apply', '-f', '-')
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')
  const mirror = async () => {
    const { code, stdout } = await controller.tryKubectl('get', 'pod', 'own-pi-1', '-o', 'json')
    const { metadata, status }: Pod = code === 0 ? JSON.parse(stdout) : { metadata: {} }
    return { uid: metadata.uid, containerID: status?.containerStatuses?.[0]?.containerID }
  }
  const before = await eventually('the machine’s own pod has a mirror', async () => {
    const now = await mirror()
    return now.containerID !== undefined && now
  })

  await controller.kubectl('delete', 'node', 'pi-1')
  // The controller looks every 20 s, and waits 40 s for the node to come back: 80 s where nothing is slow.
  await eventually(
    'its pod is removed once the node has been missing for a while',
    async () => (await controller.tryKubectl('get', 'pod', 'web')).stderr.includes('NotFound'),
    { withinMs: 150_000, everyMs: 2000 },
  )
  t.match(
    (await controller.tryKubectl('get', 'node', 'pi-1')).stderr,
    'NotFound',
    'a running agent does not bring it back',
  )
  await eventually('the mirror goes with it', async () => (await mirror()).uid === undefined)
  t.ok(
    (await docker.docker.listContainers()).length > 0,
    'it receives nothing any more, and continues with what it has',
  )
  await agent.stop()

  const again = await start(true)
  const refused = await again.logged('The controller rejects this node, trying again until it accepts it')
  t.match(refused['remedy'], /Join again with a new token/)
  t.match(JSON.stringify(refused), /was revoked \(NodeDeleted\)/)
  await again.stop()
  await joinFleet(controller, 'pi-1', dataDir())
  const back = await start(true)
  await back.logged('Node registered')
  await controller.nodesReady('pi-1')
  await eventually('it ends what the pod left running', async () => {
    const left = await docker.docker.listContainers()
    return left.every(({ Labels }) => Labels['io.kubernetes.pod.name'] === 'own-pi-1')
  })
  await eventually(
    'and what is the machine’s own has another mirror, of the container that ran all the time',
    async () => {
      const { uid, containerID } = await mirror()
      return uid !== before.uid && containerID === before.containerID
    },
  )
})

test('certificate requests that are not approved automatically are approved by an administrator', async (t) => {
  const folder = await temporaryFolder(t)
  const controller = await startController(t, { dataDir: join(folder, 'controller') })
  const files = { key: join(folder, 'node.key'), csr: join(folder, 'node.csr') }
  await run('openssl', [
    ...['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
    ...['-keyout', files.key, '-out', files.csr, '-subj', '/O=system:nodes/CN=system:node:pi-9'],
  ])
  const request = (await readFile(files.csr)).toString('base64')
  const usages = ['digital signature', 'client auth']
  const asking = (name: string) => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: { request, signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages, expirationSeconds: 3600 },
  })
  for (const name of ['wanted', 'unwanted']) {
    await controller.kubectlWith(JSON.stringify(asking(name)), 'create', '-f', '-')
  }
  t.match(
    await controller.kubectl('get', 'csr'),
    /unwanted .* Pending\nwanted .* Pending/,
    'a machine that does not join',
  )
  await controller.kubectl('certificate', 'approve', 'wanted')
  await controller.kubectl('certificate', 'deny', 'unwanted')
  await eventually('the approved one is signed', async () =>
    (await controller.kubectl('get', 'csr', 'wanted')).includes('Approved,Issued'),
  )
  t.match(await controller.kubectl('get', 'csr', 'unwanted'), 'Denied')
  const pem = await controller.kubectl('get', 'csr', 'wanted', '-o', 'jsonpath={.status.certificate}')
  t.match(Buffer.from(pem, 'base64').toString(), /-----BEGIN CERTIFICATE-----/)
})

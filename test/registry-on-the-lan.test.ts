/** "A registry on the LAN" of docs/recipes.md: its commands as they are written, on a machine with Debian's docker-registry and on a node. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import type { Pod } from '../api/pod.ts'
import { type Controller, startController, temporaryFolder } from './support/fleet.ts'
import { bootMachine, type Machine } from './support/machine.ts'
import { commandOrThrow } from './support/machine-commands.ts'
import { machineNetwork } from './support/machine-network.ts'
import { podManifest } from './support/manifests.ts'
import { installOnDisk, localMirror, testPackages } from './support/packaged.ts'
import { eventually } from './support/wait.ts'

/** The only thing that is changed in what the document has: the address of the registry's machine. */
const writtenAddress = '192.168.1.10'

async function recipe(address: string) {
  const page = await readFile(fileURLToPath(new URL('../../docs/recipes.md', import.meta.url)), 'utf8')
  const [, section = ''] = /^## A registry on the LAN\n(.*?)^## /ms.exec(page) ?? []
  const blocks = [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, text = '']) => text)
  const [hub = '', serve = '', trust = '', push = '', demand = '', login = '', secret = '', ...others] = blocks
  if (secret === '' || others.length > 0) throw new Error(`The recipe has ${blocks.length} blocks of commands`)
  const prose = section.replace(/^```.*?^```/gms, '').replace(/\s+/g, ' ')
  const quoted = (pattern: RegExp) => {
    const [, text] = pattern.exec(prose) ?? []
    if (text === undefined) throw new Error(`The recipe has no ${pattern}`)
    return text
  }
  const shell = (block: string) => `set -e\n${hub.replace(writtenAddress, address)}${block}`
  return {
    serve: shell(serve),
    trust: shell(trust),
    push: (tag = 'app:1') => shell(push.replaceAll('app:1', tag)),
    demand: shell(demand),
    login: shell(login),
    secret: shell(secret),
    image: quoted(/use the image name `(.*?)`/).replace(writtenAddress, address),
    untrusted: quoted(/Without the certificate a pull fails with `(.*?)`/),
    anonymous: quoted(/Without it a pull fails with `(.*?)`/),
    pullSecrets: quoted(/Set `imagePullSecrets: \[{ name: (.*?) }\]`/),
  }
}

async function joined(controller: Controller, machine: Machine): Promise<void> {
  await machine.run(`bramble-agent ${(await controller.joinLine()).join(' ')} --no-run`)
  await controller.nodesReady(machine.name)
}

function podsOf({ kubectl, kubectlWith }: Controller) {
  const get = async (name: string): Promise<Pod> => JSON.parse(await kubectl('get', 'pod', name, '-o', 'json'))
  return {
    async apply(name: string, image: string, imagePullSecrets: readonly string[] = []) {
      const spec = { imagePullSecrets: imagePullSecrets.map((secret) => ({ name: secret })) }
      const container = { imagePullPolicy: 'IfNotPresent' }
      await kubectlWith(podManifest({ name, image, spec, container }), 'apply', '-f', '-')
    },
    runs: (name: string) => kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=60s'),
    /** Asserts that the status and an Event of the pod have this text. */
    async pullFails(t: Test, name: string, image: string, text: string) {
      const waiting = await eventually(`${name} waits for its image`, async () => {
        const state = (await get(name)).status?.containerStatuses?.[0]?.state?.waiting
        return /^(ErrImagePull|ImagePullBackOff)$/.test(state?.reason ?? '') && state
      })
      t.match(waiting.message, text, 'the status of the pod')
      const failed = ['get', 'events', '--field-selector', `involvedObject.name=${name},reason=Failed`, '-o']
      const events = await eventually('the Event', async () => {
        const messages = await kubectl(...failed, 'jsonpath={range .items[*]}{.message}{"\\n"}{end}')
        return messages.includes('Failed to pull') && messages
      })
      t.match(events, `Failed to pull image "${image}": `)
      t.match(events, text, 'an Event of the pod')
    },
  }
}

/** systemd is done when the process is there, before its port is open. */
async function serves(registry: Machine): Promise<void> {
  await eventually('the registry listens', async () => (await registry.run('ss -Htln sport = :5000')) !== '')
}

test('images come from a registry on the LAN that is made as recipes.md describes it', async (t) => {
  const packages = await testPackages()
  const network = await machineNetwork(t)
  const folder = await temporaryFolder(t)
  const address = network.hostAddress
  const [controller, registry, node] = await Promise.all([
    startController(t, { dataDir: join(folder, 'controller'), address }),
    bootMachine(t, { name: 'registry', network }),
    bootMachine(t, { name: 'pi-01', network, prepare: (disk) => installOnDisk(disk, packages.agent) }),
  ])
  const page = await recipe(registry.address)
  const pods = podsOf(controller)
  await localMirror(registry)
  await Promise.all([registry.run(page.serve), registry.importImage('app:1'), joined(controller, node)])
  await serves(registry)
  const copied = async (file: string) => {
    const copy = join(folder, 'copy')
    await writeFile(copy, await registry.run(`cat ${file}`), { mode: 0o600 })
    return copy
  }

  await t.test('its private key is for root and the registry only', async (t) => {
    t.equal(await registry.run('stat -c "%U %a" /etc/docker/registry/tls.key'), 'docker-registry 600\n')
  })

  await t.test('a node that does not have its certificate pulls nothing from it', async (t) => {
    t.match(await registry.tryRun(page.push()), { code: 1, stderr: page.untrusted })
    await registry.run(`cd /etc/docker/registry\n${page.trust}`)
    await registry.run(page.push())
    await pods.apply('web', page.image)
    await pods.pullFails(t, 'web', page.image, page.untrusted)
  })

  await t.test('the pod runs once the node has it, without a restart of Docker', async (t) => {
    await node.copyIn(await copied('/etc/docker/registry/tls.crt'), '/root/tls.crt')
    await node.run(`cd /root\n${page.trust}`)
    t.match(await pods.runs('web'), 'pod/web condition met')
  })

  await t.test('with a password it serves those that have it, and no others', async (t) => {
    await registry.run(page.demand)
    await serves(registry)
    t.equal(await registry.run('stat -c "%U %a" /etc/docker/registry/htpasswd'), 'docker-registry 600\n')
    t.equal(await registry.run('stat -c "%U %a" /root/registry-password'), 'root 600\n')
    await registry.importImage('app:2')
    t.match(await registry.tryRun(page.push('app:2')), { code: 1, stderr: page.anonymous })
    await registry.run(`cd /root\n${page.login}`)
    await registry.run(page.push('app:2'))
    const image = page.image.replace('app:1', 'app:2')

    await pods.apply('anonymous', image)
    await pods.pullFails(t, 'anonymous', image, page.anonymous)
    const given = ['--docker-username=images', '--docker-password=guess', `--docker-server=${registry.address}:5000`]
    await controller.kubectl('create', 'secret', 'docker-registry', 'guess', ...given)
    await pods.apply('guess', image, ['guess'])
    await pods.pullFails(t, 'guess', image, 'unauthorized')

    await writeFile(join(folder, 'registry-password'), await registry.run('cat /root/registry-password'))
    const here = ['-C', folder, `KUBECONFIG=${controller.kubeconfig}`, `HOME=${folder}`]
    await commandOrThrow('env', [...here, 'sh', '-c', page.secret])
    await pods.apply('private', image, [page.pullSecrets])
    t.match(await pods.runs('private'), 'pod/private condition met')
  })

  await t.test('a registry with another certificate is not trusted', async (t) => {
    await registry.run(page.serve)
    await serves(registry)
    const image = page.image.replace('app:1', 'app:3')
    await pods.apply('other', image)
    await pods.pullFails(t, 'other', image, page.untrusted)
  })
})

/** Certificates over the years: renewed, ended, taken back, and signed by another authority. */
import { spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t as all, test } from 'tap'
import { readIdentity, writeIdentity } from '../agent/join/identity.ts'
import { openAuthority } from '../certs/authority.ts'
import { caHash } from '../certs/ca-hash.ts'
import { issueNode } from '../certs/issue.ts'
import { type Controller, joinFleet, startAgent, startController, temporaryFolder } from './support/fleet.ts'
import type { Program } from './support/program.ts'
import { eventually } from './support/wait.ts'

// Side by side: each waits for most of its time.
all.jobs = 2
const dayMs = 24 * 3600_000
const [connected, renewed] = ['Connected to the control plane', 'Certificate of this node renewed']

test('a node whose certificate is of another time', { buffered: true }, async (t) => {
  const folder = await temporaryFolder(t)
  const dataDir = join(folder, 'controller')
  let controller = await startController(t, { dataDir })
  const ports = { apiPort: Number(new URL(controller.apiUrl).port), mqttPort: controller.mqttPort }
  const agentDir = join(folder, 'pi-1')
  const start = () => startAgent(t, { dataDir: agentDir, dockerSocket: join(folder, 'no-docker') })
  await joinFleet(controller, 'pi-1', agentDir)
  const known = await start()
  await known.logged('Node registered')
  await known.stop()

  await t.test('comes back by itself where the controller’s clock was ahead when it was made', async (t) => {
    await endCertificate(controller, agentDir, -100)
    const agent = await start()
    await agent.logged(renewed)
    await agent.logged(connected)
    const { certificate } = await identityIn(agentDir)
    t.ok(Date.parse(new X509Certificate(certificate).validFrom) < Date.now())
    await agent.stop()
  })

  await t.test('is refused with the remedy where it ended too long ago', async (t) => {
    await endCertificate(controller, agentDir, 400)
    const agent = await start()
    const lines = await agent.logged('Certificate of this node not renewed, trying until it works')
    t.match(JSON.stringify(lines), /the client certificate expired at/)
    await agent.stop()
  })

  await t.test('waits for an operator where that is wanted', async (t) => {
    await controller.program.stop()
    controller = await startController(t, { dataDir, ...ports, settings: { expiredCertificateQuarantine: true } })
    await endCertificate(controller, agentDir, 30)
    const agent = await start()
    const name = await eventually('its request is there', async () => {
      const lines = (await controller.kubectl('get', 'csr', '--no-headers')).split('\n')
      return lines.find((line) => /system:node:pi-1.*Pending/.test(line))?.split(/\s+/)[0]
    })
    await controller.kubectl('certificate', 'approve', name)
    await agent.logged(renewed, 60_000)
    await agent.logged(connected)
    await agent.stop()
  })
})

test('certificates are taken back, and go over to another authority', {
  buffered: true,
}, async (t) => {
  const folder = await temporaryFolder(t)
  const dataDir = join(folder, 'controller')
  const controller = await startController(t, { dataDir })
  const joined = async (name: string): Promise<Program> => {
    const agentDir = join(folder, name)
    await joinFleet(controller, name, agentDir)
    const agent = await startAgent(t, { dataDir: agentDir, dockerSocket: join(folder, 'no-docker') })
    await agent.logged('Node registered')
    await agent.logged(connected)
    return agent
  }
  const command = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await controller.command('certificates', ...args, '--data-dir', dataDir)
    return { code, output: `${stdout}${stderr}` }
  }
  /** `kubectl get nodes --watch`, which has seen something. */
  const watching = async () => {
    const args = ['--kubeconfig', controller.kubeconfig, 'get', 'nodes', '--watch', '-o', 'json']
    const kubectl = spawn('kubectl', args, { stdio: ['ignore', 'pipe', 'ignore'] })
    t.teardown(async () => kubectl.kill())
    await once(kubectl.stdout, 'data')
    kubectl.stdout.resume()
    return {
      get isCut() {
        return kubectl.exitCode !== null
      },
    }
  }
  const first = await joined('pi-1')
  const second = await joined('pi-2')

  await t.test('all are shown with their dates', async (t) => {
    const shown = await eventually('both nodes are there', async () => {
      const { output } = await command()
      return /node pi-1 .*\d{4}-.*\nnode pi-2 .*\d{4}-/.test(output) && output
    })
    t.match(shown, /authority .*\n(.*\n)*server .*\n(.*\n)*administrator /)
  })

  await t.test('a revoked node is cut off and stays out, and another goes on', async (t) => {
    t.match(await command('revoke', 'pi-2', '--reason', 'Stolen'), { code: 0 })
    const trouble = await second.logged('Cannot connect to the control plane, trying until it works', 60_000)
    t.match(trouble['remedy'], /Join again/)
    t.match((await command()).output, /revoked: system:node:pi-2, certificates issued before .* \(Stolen\)/)
    t.notOk(
      first.lines.some(({ message }) => message === 'Connection to the control plane lost, trying until it is back'),
    )
    await second.stop()
    await controller.kubectl('delete', 'node', 'pi-2')
  })

  await t.test('an administrator’s kubeconfig is taken back, and there is another one', async (t) => {
    const before = await readFile(controller.kubeconfig, 'utf8')
    const watch = await watching()
    t.match(await command('revoke', 'kubernetes-admin'), { code: 0, output: /the new one is / })
    t.not(await readFile(controller.kubeconfig, 'utf8'), before)
    await eventually('who watches is cut off', () => watch.isCut)
    t.match(await controller.kubectl('get', 'nodes'), /pi-1/)
    const old = join(folder, 'old-kubeconfig')
    await writeFile(old, before, { mode: 0o600 })
    t.match(await controller.tryKubectl('--kubeconfig', old, 'get', 'nodes'), {
      code: 1,
      stderr: /Unauthorized|revoked/,
    })
  })

  await t.test('to another authority, with no node left behind', async (t) => {
    const watch = await watching()
    const before = (await identityIn(join(folder, 'pi-1'))).ca
    t.match(await command('rollover', 'change-over'), { code: 1, output: /begin first/ })
    t.match(await command('rollover', 'begin'), { code: 0, output: /next authority is sha256:/ })
    await first.logged('Authorities of the fleet adopted')
    await eventually('the node reports that it trusts both', async () => {
      const trusted = 'jsonpath={.metadata.annotations.bramble\\.dev/trusted-authorities}'
      return (await controller.kubectl('get', 'node', 'pi-1', '-o', trusted)).split(',').length === 2
    })
    // It renews at a moment of the next minute that it draws, which may be the first.
    first.kill('SIGSTOP')
    t.match(await command('rollover', 'change-over'), { code: 0, output: /The authority is now sha256:/ })
    t.match(await command('rollover', 'finish'), { code: 1, output: /Nodes pi-1 have no certificate of the present/ })
    first.kill('SIGCONT')
    await first.logged(renewed, 150_000)
    t.notOk(watch.isCut, 'who watches notices nothing so far')
    await eventually('the controller sees the new one', async () => (await command('rollover', 'finish')).code === 0, {
      withinMs: 60_000,
    })
    await eventually('the node trusts the new one alone', async () => {
      const { ca } = await identityIn(join(folder, 'pi-1'))
      return ca.split('BEGIN').length === 2 && caHash(ca) !== caHash(before)
    })
    await eventually('who came with a certificate of the first one is cut off', () => watch.isCut)
    t.match(await controller.kubectl('get', 'nodes'), /pi-1/, 'the kubeconfig went along')
    t.notOk(first.lines.some(({ level }) => level === 'error'))
    await joined('pi-3')
  })
})

/** In place of the node's certificate one of a day that ended this many days ago. */
async function endCertificate(controller: Controller, agentDir: string, daysAgo: number): Promise<void> {
  const authority = await openAuthority(join(controller.dataDir, 'authority'), Date.now())
  const issued = issueNode(authority, { nodeName: 'pi-1', nowMs: Date.now() - (daysAgo + 1) * dayMs, lifeMs: dayMs })
  await writeIdentity(agentDir, { ...(await identityIn(agentDir)), ...issued })
}

async function identityIn(agentDir: string) {
  const identity = await readIdentity(agentDir)
  if (identity === undefined) throw new Error(`No identity: ${await readFile(agentDir, 'utf8')}`)
  return identity
}

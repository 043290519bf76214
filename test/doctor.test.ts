/** `bramble-agent doctor` as a person runs it: beside a real controller, a real Docker, and neither. */
import { chmodSync, copyFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'tap'
import { DoctorReportSchema } from '../agent/doctor/report.ts'
import { decode } from '../api/decode.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { agentCommand, joinFleet, startAgent, startController, temporaryFolder } from './support/fleet.ts'
import { command } from './support/machine-commands.ts'
import { eventually } from './support/wait.ts'

async function doctor(...args: readonly string[]) {
  const startedMs = performance.now()
  const { code, stdout, stderr } = await agentCommand('doctor', '-o', 'json', ...args)
  const tookMs = performance.now() - startedMs
  const decoded = decode(DoctorReportSchema, JSON.parse(stdout))
  if (!decoded.ok) throw new Error(`Not a report: ${stdout}${stderr}`)
  const { findings, ...rest } = decoded.value
  return { ...rest, code, tookMs, of: (check: string) => findings.find((one) => one.check === check) }
}

/** Again and again, for what is busy may take longer to answer than the doctor waits. */
function doctorOnce(args: readonly string[], verdicts: Readonly<Record<string, string>>) {
  return eventually(
    'the doctor finds it so',
    async () => {
      const found = await doctor(...args)
      const others = Object.keys(verdicts).filter((check) => found.of(check)?.verdict !== verdicts[check])
      if (others.length === 0) return found
      throw new Error(others.map((check) => JSON.stringify(found.of(check) ?? check)).join())
    },
    { withinMs: 60_000 },
  )
}

test('on a machine that has not joined, without Docker', async (t) => {
  const folder = await temporaryFolder(t)
  const data = ['--data-dir', join(folder, 'none'), '--docker-socket', join(folder, 'no-docker')]
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => void server.close())
  const address = server.address()
  const port = String(typeof address === 'object' ? address?.port : '')

  const found = await doctorOnce([...data, '--port', port], { [`port-${port}`]: 'problem' })
  t.equal(found.code, 1)
  t.match(found.of('docker'), { verdict: 'problem', remedy: /apt-get install/ })
  t.match(found.of('identity'), { verdict: 'warning', remedy: /--print-join-command/ })
  t.match(found.of(`port-${port}`), { verdict: 'problem', found: /taken by/ })
  t.equal(found.of('controller-port'), undefined)
  t.ok(found.of('disk-space'))

  const text = await agentCommand('doctor', ...data)
  t.equal(text.code, 1)
  t.match(text.stdout, /^PROBLEM +docker /m)
  t.equal((await agentCommand('doctor', '--fix', '-o', 'json')).code, 64)
})

test('joined, with a Docker, and with the controller gone', { skip: whyNoDockerd() }, async (t) => {
  const folder = await temporaryFolder(t)
  const [controller, dockerd] = await Promise.all([
    startController(t, { dataDir: join(folder, 'controller') }),
    startDockerd({ teardown: (end) => t.teardown(end) }),
  ])
  const dataDir = join(folder, 'pi-1')
  await joinFleet(controller, 'pi-1', dataDir)
  const usual = ['--data-dir', dataDir, '--docker-socket', dockerd.socket]

  await t.test('before the agent ran the node is not there', async (t) => {
    const found = await doctorOnce(usual, {
      'controller-port': 'ok',
      'controller-api': 'warning',
      'controller-clock': 'ok',
      'mqtt-port': 'ok',
      'node-certificate': 'ok',
      docker: 'ok',
    })
    t.match(found.of('controller-api'), { found: /no node pi-1/ })
    t.match(found.of('docker'), { found: /Docker \d+\.\d+.* answers/ })
    t.match(found.of('docker-storage'), { found: RegExp(dockerd.rootDirectory) })
    t.match(found.of('docker-live-restore'), { verdict: 'warning' })
  })

  await t.test('with the agent running it is this machine, and its door answers', async (t) => {
    const agent = await startAgent(t, { dataDir, dockerSocket: dockerd.socket })
    const { url } = await agent.logged('Local endpoint open')
    await agent.logged('Node status posted')
    const found = await doctorOnce([...usual, '--healthz-port', new URL(String(url)).port], {
      'controller-api': 'ok',
      hardware: 'ok',
      'healthz-port': 'ok',
    })
    t.match(found.of('controller-api'), { found: /as node pi-1/ })
    t.match(found.of('agent-service'), { found: /process \d+/ })
    await agent.stop()
  })

  await t.test('an identity that others can read is closed', async (t) => {
    chmodSync(join(dataDir, 'identity.json'), 0o644)
    const before = await doctorOnce(usual, { 'identity-file': 'problem' })
    await eventually('nothing is done without a yes', async () =>
      /not a terminal; use --yes/.test((await agentCommand('doctor', ...usual, '--fix')).stderr),
    )
    const after = await doctorOnce(usual, { 'identity-file': 'problem' })
    t.same(after.of('identity-file'), before.of('identity-file'))
  })

  await t.test('the report for another user than root lists what only root can see', async (t) => {
    // That user may enter no folder of this checkout: neither the bundle, nor a Node.js in dist/tools, nor the module of tap in NODE_OPTIONS.
    chmodSync(folder, 0o755)
    const [node, bundle] = [join(folder, 'node'), join(folder, 'bramble-agent.mjs')]
    copyFileSync(process.execPath, node)
    copyFileSync(new URL('../bundle/bramble-agent.mjs', import.meta.url), bundle)
    const unprivileged = ['--reuid=65534', '--regid=65534', '--clear-groups', 'env', '--unset=NODE_OPTIONS']
    const { stdout, stderr } = await command('setpriv', [...unprivileged, node, bundle, 'doctor', ...usual])
    const words = stdout.replace(/\s+/g, ' ')
    t.match(words, /identity Cannot read .* -> Run it with sudo/, stderr)
    t.match(words, /docker .* may not be opened by this user/)
  })

  await t.test('an unreachable controller is reported in time', async (t) => {
    await controller.program.stop()
    const gone = { 'controller-port': 'problem', 'controller-api': 'unknown', 'mqtt-port': 'problem' }
    const found = await doctorOnce(usual, gone)
    t.equal(found.code, 1)
    t.match(found.of('controller-port'), { found: /ECONNREFUSED/, remedy: /controller running/ })
    t.comment(`took ${Math.round(found.tookMs)} ms`)
  })

  await t.test('a hung Docker is reported in time', async (t) => {
    process.kill(dockerd.pid ?? 0, 'SIGSTOP')
    try {
      const found = await doctorOnce(usual, { docker: 'problem' })
      t.match(found.of('docker'), { found: /does not answer/ })
      t.comment(`took ${Math.round(found.tookMs)} ms`)
    } finally {
      process.kill(dockerd.pid ?? 0, 'SIGCONT')
    }
  })
})

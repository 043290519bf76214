/**
 * Measures what Services cost the agent in memory: its process without Services, with 1,000 of three endpoints each, after changes
 * of their endpoints, and after a start with the checkpoint of all of them. One machine that is a network namespace with a dockerd.
 * Needs root, the parts of the tests and bundles (npm run build). Prints a table. Arguments: --services N --changes N --settle SECONDS,
 * --launcher FILE for another version.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { readKubeconfig } from '../../broker-controller/kubeconfig.ts'
import { type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { startDockerd } from '../../test/support/dockerd.ts'
import { agentLauncher, joinFleet, startController, temporaryFolder } from '../../test/support/fleet.ts'
import { inSpace } from '../../test/support/machine-commands.ts'
import { machineNetwork } from '../../test/support/machine-network.ts'
import { type Program, startProgram } from '../../test/support/program.ts'
import { plugged } from '../../test/support/routed-machines.ts'
import { eventually } from '../../test/support/wait.ts'

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '1000' },
    changes: { type: 'string', default: '200' },
    settle: { type: 'string', default: '45' },
    launcher: { type: 'string', default: agentLauncher },
  },
})
const slicesPath = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
const count = Number(values.services)
const [first, changed] = [250, 253]

const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }
const rows: string[] = []

try {
  const folder = await temporaryFolder(ending)
  const network = await machineNetwork(ending)
  const served = {
    dataDir: join(folder, 'controller'),
    settings: { podNetwork: 'routed' },
    address: network.hostAddress,
  }
  const controller = await startController(ending, served)
  const { space, run } = await plugged(ending, network)
  const docker = await startDockerd(ending, { space, withRules: true })
  const dataDir = join(folder, 'pi-1')
  await joinFleet(controller, 'pi-1', dataDir, space)
  const start = () => startInSpace(space, dataDir, docker.socket)
  const api = apiClient({ ...(await readKubeconfig(controller.kubeconfig)), deadlineMs: 60_000 })
  const hasRulesOf = async (text: string) =>
    eventually(`rules with ${text}`, async () => (await run('nft', 'list', 'table', 'ip', 'bramble')).includes(text))

  let agent = start()
  await controller.nodesReady('pi-1')
  await measure('without Services', agent)
  for (let index = 0; index < count; index++) await createService(api, index)
  await hasRulesOf(endpointsAt(count - 1, first)[0]?.addresses[0] ?? '')
  await measure(`${count} Services, as they were created`, agent)
  for (let change = 0; change < Number(values.changes); change++) {
    const index = (change * 37) % count
    await api.patch(`${slicesPath}/web-${index}`, { endpoints: endpointsAt(index, changed) })
    await delay(50)
  }
  await measure(`after ${values.changes} changes`, agent)
  await agent.stop()
  agent = start()
  await agent.logged('Rules of the network applied', 120_000)
  await measure('an agent that starts with them', agent)
  await controller.program.stop()
  await agent.stop()
  agent = start()
  await agent.logged('Rules of the network applied', 120_000)
  await measure('the same without a controller', agent)
  console.log('| agent | resident | anonymous | peak |\n|---|---|---|---|')
  console.log(rows.join('\n'))
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end()
}

function startInSpace(space: string, dataDir: string, socket: string): Program {
  const options = ['--docker-socket', socket, '--healthz-port', '0', '--log-format', 'json']
  const line = inSpace(space, values.launcher, 'run', '--data-dir', dataDir, ...options)
  return startProgram([...line], (end) => ending.teardown(end))
}

async function measure(name: string, { pid }: Program): Promise<void> {
  await delay(Number(values.settle) * 1000)
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const field = (of: string) => {
    const kilobytes = Number(new RegExp(`^${of}:\\s*(\\d+)`, 'm').exec(status)?.[1])
    return `${((kilobytes * 1024) / 1e6).toFixed(1)} MB`
  }
  rows.push(`| ${[name, ...['VmRSS', 'RssAnon', 'VmHWM'].map(field)].join(' | ')} |`)
  console.error(rows.at(-1))
}

async function createService(api: ApiClient, index: number): Promise<void> {
  const name = `web-${index}`
  const ports = [{ name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' }]
  await created(api, '/api/v1/namespaces/default/services', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { ports },
  })
  await created(api, slicesPath, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: endpointsAt(index, first),
  })
}

/** `range`: of the first of them, by which a changed Service differs. */
function endpointsAt(index: number, range: number) {
  const [high, low] = [Math.floor(index / 250), (index % 250) + 1]
  return [range, 251, 252].map((second, at) => ({
    addresses: [`10.${second}.${high}.${low}`],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: `pi-${at + 2}`,
    targetRef: { kind: 'Pod', namespace: 'default', name: `web-${index}-${at}` },
  }))
}

async function created(api: ApiClient, path: string, object: unknown): Promise<void> {
  const { status, body } = await api.post(path, object)
  if (status >= 300) throw new Error(`${path} refused an object: ${JSON.stringify(body)}`)
}

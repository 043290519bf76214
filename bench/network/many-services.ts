/** One machine, a network namespace with a dockerd, in a fleet with many Services of three endpoints each. */
import { join } from 'node:path'
import { readKubeconfig } from '../../broker-controller/commands/connection/kubeconfig.ts'
import { type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { startDockerd } from '../../test/support/dockerd.ts'
import {
  type Controller,
  joinFleet,
  startController,
  type Teardown,
  temporaryFolder,
} from '../../test/support/fleet.ts'
import { inSpace } from '../../test/support/machine-commands.ts'
import { machineNetwork } from '../../test/support/machine-network.ts'
import { type Program, startProgram } from '../../test/support/program.ts'
import { plugged, type Space } from '../../test/support/routed-machines.ts'
import { eventually } from '../../test/support/wait.ts'

const slicesPath = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
/** The second number of the address of the first endpoint, as a Service is created. */
const firstRange = 250
const creators = 8

export type ServicesMachine = Space & {
  readonly controller: Controller
  startAgent(): Program
  /** With one port and three endpoints; resolves when the rules of the last one are in the kernel. */
  createServices(count: number): Promise<void>
  /** Gives its first endpoint another address, which it resolves with; `range` from 1 to 249. */
  changeEndpoint(index: number, range: number): Promise<string>
}

/** pi-1 has joined; its agent is not started. `launcher`: the file of `bramble-agent`. */
export async function servicesMachine(ending: Teardown, launcher: string): Promise<ServicesMachine> {
  const folder = await temporaryFolder(ending)
  const network = await machineNetwork(ending)
  const controller = await startController(ending, {
    dataDir: join(folder, 'controller'),
    settings: { podNetwork: 'routed' },
    address: network.hostAddress,
  })
  const place = await plugged(ending, network)
  const docker = await startDockerd(ending, { space: place.space, withRules: true })
  const dataDir = join(folder, 'pi-1')
  await joinFleet(controller, 'pi-1', dataDir, place.space)
  const api = apiClient({ ...(await readKubeconfig(controller.kubeconfig)), deadlineMs: 60_000 })
  const options = ['--docker-socket', docker.socket, '--healthz-port', '0', '--log-format', 'json']
  return {
    ...place,
    controller,
    startAgent: () =>
      startProgram(inSpace(place.space, launcher, 'run', '--data-dir', dataDir, ...options), (end) =>
        ending.teardown(end),
      ),
    async createServices(count) {
      const indexes = Array.from({ length: count }, (_, index) => index).values()
      // The iterator is one for all: each of them takes the next index.
      const create = async () => {
        for (const index of indexes) await createService(api, index)
      }
      await Promise.all(Array.from({ length: creators }, create))
      const last = addressAt(count - 1, firstRange)
      await eventually(`rules with ${last}`, async () =>
        (await place.run('nft', 'list', 'table', 'ip', 'bramble')).includes(last),
      )
    },
    async changeEndpoint(index, range) {
      const { status } = await api.patch(`${slicesPath}/web-${index}`, { endpoints: endpointsAt(index, range) })
      if (status >= 300) throw new Error(`The change of web-${index} was refused with ${status}`)
      return addressAt(index, range)
    },
  }
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
    endpoints: endpointsAt(index, firstRange),
  })
}

/** `range`: of the first of them, by which a changed Service differs. */
function endpointsAt(index: number, range: number) {
  return [range, 251, 252].map((second, at) => ({
    addresses: [addressAt(index, second)],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: `pi-${at + 2}`,
    targetRef: { kind: 'Pod', namespace: 'default', name: `web-${index}-${at}` },
  }))
}

function addressAt(index: number, second: number): string {
  return `10.${second}.${Math.floor(index / 250)}.${(index % 250) + 1}`
}

async function created(api: ApiClient, path: string, object: unknown): Promise<void> {
  const { status, body } = await api.post(path, object)
  if (status >= 300) throw new Error(`${path} refused an object: ${JSON.stringify(body)}`)
}

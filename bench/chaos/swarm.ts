/** The workloads on a Docker Swarm of the Docker that the machines have, with its defaults. */
import type { Ending } from '../../test/support/machine.ts'
import { image, type Machines, sharedFolder } from './machines.ts'
import type { Orchestrator, Workloads } from './orchestrator.ts'

export const swarm: Orchestrator = {
  name: 'Docker Swarm',
  preparation: async () => ({}),
  async start(_ending: Ending, { hub, workers }: Machines, { replicas, withData }: Workloads) {
    await hub.run(`docker swarm init --advertise-addr ${hub.address} --availability drain`)
    const token = (await hub.run('docker swarm join-token --quiet worker')).trim()
    for (const worker of workers) {
      await worker.run(`docker swarm join --advertise-addr ${worker.address} --token ${token} ${hub.address}:2377`)
    }
    const create = async (name: string, script: string, options: readonly string[]) => {
      const common = [
        ...['--detach', '--no-resolve-image', '--name', name, '--stop-grace-period', '1s', '--env', `ROLE=${name}`],
        ...['--env', "'NODE={{.Node.Hostname}}'", '--mount', `type=bind,source=${sharedFolder},target=/chaos`],
      ]
      await hub.run(['docker service create', ...common, ...options, image, 'sh', `/chaos/${script}`].join(' '))
    }
    await create('web', 'web.sh', ['--replicas', String(replicas), '--constraint', 'node.role==worker'])
    for (const [index, role] of withData.entries()) {
      // Its volumes do not move, so its documentation has them pinned.
      const pinned = ['--constraint', `node.hostname==${workers[index]?.name}`]
      await create(role, 'data.sh', [...pinned, '--mount', 'type=volume,source=data,target=/data'])
    }
  },
}

/** The workloads on a fleet of Bramble, from its packages. */
import { holdAnnotation } from '../../agent/health/boot-loop-hold.ts'
import type { Ending } from '../../test/support/machine.ts'
import { hubOn, installController, installOnDisk, isNodeReady, testPackages } from '../../test/support/packaged.ts'
import { eventually } from '../../test/support/wait.ts'
import { image, type Machines, sharedFolder } from './machines.ts'
import type { Orchestrator, Workloads } from './orchestrator.ts'

export const bramble: Orchestrator = {
  name: 'Bramble',
  async preparation() {
    const packages = await testPackages()
    return {
      prepareHub: (disk) => installController(disk, packages.controller),
      prepareWorker: (disk) => installOnDisk(disk, packages.agent),
    }
  },
  async start(ending: Ending, { hub, workers }: Machines, workloads: Workloads) {
    const fleet = await eventually('the controller is ready', () => hubOn(ending, hub))
    for (const worker of workers) {
      await worker.run(`${await fleet.joinLine()} --no-run`)
      await worker.run('systemctl start bramble-agent')
      await eventually(`${worker.name} is Ready`, () => isNodeReady(fleet, worker.name))
    }
    await fleet.kubectlWith(manifests(workloads), 'create', '-f', '-')
  },
}

function manifests({ replicas, withData }: Workloads): string {
  const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
  const container = (script: string, role: object, mounts: readonly object[] = []) => ({
    ...{ name: 'main', image, imagePullPolicy: 'Never', command: ['sh', `/chaos/${script}`] },
    env: [{ name: 'ROLE', ...role }, field('NODE', 'spec.nodeName')],
    volumeMounts: [{ name: 'chaos', mountPath: '/chaos' }, ...mounts],
  })
  const workload = (kind: string, name: string, spec: object, pod: object) => {
    const labels = { app: name }
    // The same machine loses its power more often in a row than the agent takes for an accident.
    const metadata = { labels, annotations: { [holdAnnotation]: 'false' } }
    const volumes = [{ name: 'chaos', hostPath: { path: sharedFolder } }]
    const template = { metadata, spec: { terminationGracePeriodSeconds: 1, volumes, ...pod } }
    return {
      ...{ apiVersion: 'apps/v1', kind, metadata: { name } },
      spec: { selector: { matchLabels: labels }, template, ...spec },
    }
  }
  const apart = { labelSelector: { matchLabels: { app: 'data' } }, topologyKey: 'kubernetes.io/hostname' }
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '64Mi' } } }
  const data = container('data.sh', field('ROLE', 'metadata.name'), [{ name: 'data', mountPath: '/data' }])
  const items = [
    workload('Deployment', 'web', { replicas }, { containers: [container('web.sh', { value: 'web' })] }),
    workload(
      ...(['StatefulSet', 'data'] as const),
      {
        ...{ replicas: withData.length, serviceName: 'data', podManagementPolicy: 'Parallel' },
        volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
      },
      {
        containers: [data],
        affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] } },
      },
    ),
  ]
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}

/** Manifests of Jobs, as a user would write them. */
import type { Job } from '../../api/batch/job.ts'
import { image } from './pods.ts'

/** A Job whose pods run the shell script once. */
export function jobManifest(name: string, script: string, spec: Partial<Job['spec']> = {}): string {
  const containers = [{ name: 'main', image, command: ['sh', '-c', script] }]
  const template = { spec: { restartPolicy: 'Never', containers } }
  return JSON.stringify({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec: { template, ...spec } })
}

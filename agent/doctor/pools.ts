/** The check of configured pools: whether the folder or the disk of each is there. */
import type { ConfiguredPool } from '../pods/volumes/pool-settings.ts'
import { type DoctorFinding, ok, problem, unknown } from './doctor-finding.ts'
import type { MachineFiles } from './sources.ts'

/** Where udev has a link for each file system that is attached. */
const links = '/dev/disk/by-uuid'
const check = 'pools'

/** Nothing where no pools are configured: the agent makes the one of the data directory itself. */
export async function poolFindings(
  pools: readonly ConfiguredPool[],
  files: Pick<MachineFiles, 'has' | 'names'>,
): Promise<readonly DoctorFinding[]> {
  if (pools.length === 0) return []
  const attached = await files.names(links)
  const missing: string[] = []
  for (const { name, place } of pools) {
    if ('path' in place && !(await files.has(place.path))) missing.push(`the folder ${place.path} of the pool ${name}`)
    if ('disk' in place && attached.length > 0 && !attached.includes(place.disk))
      missing.push(`the disk ${place.disk} of the pool ${name}`)
  }
  if (missing.length > 0) {
    const remedy = "Attach or mount it, or correct pools in the configuration ('lsblk -f' prints the UUIDs of disks)"
    return [problem(check, `Missing: ${missing.join(', ')}. Pods with volumes there wait`, remedy)]
  }
  const names = pools.map(({ name }) => name).join(', ')
  if (attached.length === 0 && pools.some(({ place }) => 'disk' in place))
    return [unknown(check, `${links} does not exist, so that the disks of ${names} cannot be looked for`)]
  return [ok(check, `There: ${names}`)]
}

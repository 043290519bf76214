/** The check for pods that are held back after a boot loop. */
import { heldMs, releaseCommand } from '../health/boot-loop-hold.ts'
import { type DoctorFinding, ok, warning } from './doctor-finding.ts'

/** `held`: each as `namespace/name`, or its UID where the name is unknown. */
export function bootLoopFinding(held: readonly string[], uptimeMs: number): DoctorFinding {
  const check = 'boot-loop'
  if (held.length === 0) return ok(check, 'No pod is held back')
  const minutes = Math.ceil((heldMs - uptimeMs) / 60_000)
  const until = minutes > 0 ? `for ${minutes} more minutes` : 'until its next start has done no harm for ten minutes'
  const remedy = `Correct the pod, delete it and create it again; or start it as it is: ${held.map(releaseCommand).join(', ')}`
  return warning(
    check,
    `Held back ${until}, because the machine went down again and again after its start: ${held.join(', ')}`,
    remedy,
  )
}

/**
 * Decides when the files of an image are checked, and what is reported of a damaged one. A power cut leaves files of an image empty, and
 * its containers then fail with errors that do not name the cause: `exec format error`, `no such file or directory`, `file too short`.
 */
import type { RuntimeContainer } from '../../runtime/runtime.ts'

/** A container of a damaged image ends right after its start. */
const quickMs = 10_000
/** 128 + SIGKILL, SIGTERM, SIGINT: others ended it. */
const stoppedCodes: ReadonlySet<number> = new Set([130, 137, 143])

/** Whether the end of this instance may be due to a damaged image. */
export function endsAsDamaged({ state, error, exitCode, startedAt, finishedAt }: RuntimeContainer): boolean {
  if (state === 'created') return error !== ''
  const ranMs = Date.parse(finishedAt ?? '') - Date.parse(startedAt ?? '')
  return exitCode !== 0 && !stoppedCodes.has(exitCode) && ranMs <= quickMs
}

/** `damage`: what is wrong, as `ContainerRuntime.imageDamage` reports it. */
export function damageMessage(image: string, damage: string): string {
  return `the image ${image} is damaged on this machine: ${damage}. ${damageRemedy(image)}`
}

/** `damage`: why the engine cannot use the image. It can then neither remove it nor pull it again. */
export function unusableMessage(image: string, damage: string): string {
  return `the image ${image} is damaged on this machine: ${damage}, so Docker can neither remove it nor pull it again. Remove its files while Docker is stopped (docs/operating.md, Damaged images)`
}

/** Containers keep the layers of their image: with them, Docker would take the damaged layers again. */
export function damageRemedy(image: string): string {
  const containers = `docker rm --force $(docker ps --all --quiet --filter ancestor=${image})`
  return `Remove its containers and then the image ('${containers}', 'docker image rm --force ${image}'); it is pulled again, or import it again if no registry has it`
}

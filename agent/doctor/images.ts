/** Checks that the files of Docker's images are as they were unpacked: a power cut can leave some of them empty. */
import { damageRemedy } from '../pods/images/image-damage.ts'
import { type DoctorFinding, ok, problem } from './doctor-finding.ts'

export type ImagesReading = {
  /** With a name. */
  readonly images: number
  /** Those that were checked within the time: first those whose containers have ended. */
  readonly checked: number
  readonly damaged: readonly { readonly name: string; readonly damage: string }[]
}

const check = 'docker-images'

export function imageFindings({ images, checked, damaged }: ImagesReading): readonly DoctorFinding[] {
  if (damaged.length > 0) {
    return damaged.map(({ name, damage }) =>
      problem(check, `The image ${name} is damaged on this machine: ${damage}`, damageRemedy(name)),
    )
  }
  const rest = checked < images ? `; ${images - checked} were not checked in time` : ''
  return [ok(check, `The files of ${checked} images are as Docker unpacked them${rest}`)]
}

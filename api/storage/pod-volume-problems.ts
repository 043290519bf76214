/** Validates the volumes of pods that are claims (validatePersistentClaimVolumeSource, validateEphemeralVolumeSource of Kubernetes). */
import { dnsSubdomainProblem } from '../names.ts'
import type { Pod, Volume } from '../pod.ts'
import { forbidden, invalid, type Problem, required } from '../problem.ts'
import { annotationProblems, labelProblems } from '../validation/metadata-validation.ts'
import { claimSpecProblems } from './claim-spec-problems.ts'
import { claimsOfPod } from './pod-claims.ts'

/** `at`: the path of the volume. */
export function claimVolumeProblems(at: string, { persistentVolumeClaim, ephemeral }: Volume): readonly Problem[] {
  const isUnnamed = persistentVolumeClaim?.claimName === ''
  return [
    ...(isUnnamed ? [required(`${at}.persistentVolumeClaim.claimName`)] : []),
    ...(ephemeral === undefined ? [] : templateProblems(`${at}.ephemeral.volumeClaimTemplate`, ephemeral)),
  ]
}

function templateProblems(
  at: string,
  { volumeClaimTemplate: template }: NonNullable<Volume['ephemeral']>,
): readonly Problem[] {
  if (template === undefined) return [required(at)]
  const { labels, annotations, ...others } = template.metadata ?? {}
  return [
    ...annotationProblems(`${at}.metadata.annotations`, annotations),
    ...labelProblems(`${at}.metadata.labels`, labels),
    ...Object.entries(others)
      .filter(([, value]) => value !== undefined && value !== '')
      .map(([name]) => forbidden(`${at}.metadata.${name}`, 'cannot be set')),
    ...claimSpecProblems(`${at}.spec`, template.spec ?? {}),
  ]
}

/** What only a pod with a name can have wrong: the names of the claims that are made for it. */
export function podClaimProblems(pod: Pod): readonly Problem[] {
  const made = claimsOfPod(pod).filter(({ isEphemeral }) => isEphemeral)
  const names = new Set(made.map(({ name }) => name))
  return (pod.spec.volumes ?? []).flatMap(({ name: volume, persistentVolumeClaim }, index) => {
    const at = `spec.volumes[${index}]`
    const { claimName = '' } = persistentVolumeClaim ?? {}
    const claim = made.find((one) => one.volume === volume)
    const wrong = claim && dnsSubdomainProblem(claim.name)
    return [
      ...(names.has(claimName)
        ? [
            invalid(
              `${at}.persistentVolumeClaim.claimName`,
              claimName,
              'must not reference a PVC that gets created for an ephemeral volume',
            ),
          ]
        : []),
      ...(claim && wrong ? [invalid(`${at}.name`, volume, `PVC name "${claim.name}": ${wrong}`)] : []),
    ]
  })
}

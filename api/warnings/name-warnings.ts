/** Warnings about names that are valid, but not DNS labels. */
import { dnsLabelProblem } from '../names.ts'

/** Warnings of an object whose pods get their names from its own, such as a Deployment. */
export function podNamesWarnings(name: string): readonly string[] {
  return labelWarnings(name, 'Pod names and hostnames')
}

/** Warnings of a pod. */
export function hostnameWarnings(name: string): readonly string[] {
  return labelWarnings(name, "the Pod's hostname")
}

/** The name is a DNS subdomain. The reasons are those of IsDNS1123Label in apimachinery/pkg/util/validation. */
function labelWarnings(name: string, usedIn: string): readonly string[] {
  if (dnsLabelProblem(name) === undefined) return []
  const reasons = [
    ...(name.length > 63 ? ['must be no more than 63 characters'] : []),
    ...(name.includes('.') ? ['must not contain dots'] : []),
  ]
  const because = `which can result in surprising behavior; a DNS label is recommended: [${reasons.join(' ')}]`
  return [`metadata.name: this is used in ${usedIn}, ${because}`]
}

/** Which of several classes is the default, for kinds of objects that name a class. */
import type { AnyObject } from '../meta.ts'

/**
 * The name of the class that has one of the annotations with the value `true`: of several the newest, then the first by name
 * (plugin/pkg/admission/network/defaultingressclass/admission.go, pkg/volume/util/storageclass.go). undefined: there is none.
 */
export function defaultClassName(
  classes: readonly Pick<AnyObject, 'metadata'>[],
  ...annotations: readonly string[]
): string | undefined {
  const age = ({ metadata }: Pick<AnyObject, 'metadata'>) => Date.parse(metadata.creationTimestamp ?? '')
  const name = ({ metadata }: Pick<AnyObject, 'metadata'>) => metadata.name ?? ''
  const [first] = classes
    .filter(({ metadata }) => annotations.some((one) => metadata.annotations?.[one] === 'true'))
    .sort((a, b) => age(b) - age(a) || (name(a) < name(b) ? -1 : 1))
  return first?.metadata.name
}

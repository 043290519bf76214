/** How sessions name pods. */
import { mirrorAnnotation, type Pod } from '../../api/pod.ts'
import type { SessionRequest } from '../../api/sessions.ts'

/** The pod in a request: of a mirror pod, that of the static pod. */
export function podIn({ metadata }: Pod): Required<Pick<SessionRequest, 'namespace' | 'pod' | 'uid'>> {
  const { namespace = '', name = '', uid = '', annotations } = metadata
  return { namespace, pod: name, uid: annotations?.[mirrorAnnotation] ?? uid }
}

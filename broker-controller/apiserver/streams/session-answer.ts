/** A node connects the session that was requested of it: the other end of `node-session.ts`. */
import { ApiError } from '../../../api/api-error.ts'
import { type Identity, nodeOf } from '../../../api/identity.ts'
import { sessionProtocol } from '../../../api/sessions.ts'
import type { OfferedProtocols, ResourceNeeds } from '../handlers/strategy.ts'
import type { ApiResponse } from '../wire/answers.ts'

export type SessionConnect = {
  readonly id: string
  readonly identity: Identity
  readonly offered: OfferedProtocols | undefined
}

/** Throws Forbidden for anybody but a node, and NotFound where no session was requested of it under this id. */
export async function sessionAnswer(
  { id, identity, offered }: SessionConnect,
  { sessions }: Pick<ResourceNeeds, 'sessions'>,
): Promise<ApiResponse> {
  const node = nodeOf(identity)
  if (node === undefined) throw new ApiError('Forbidden', 'sessions are connected by nodes only')
  if (offered?.upgrade !== sessionProtocol) throw new ApiError('BadRequest', `Upgrade to ${sessionProtocol} required`)
  if (!sessions?.awaits(node, id)) throw new ApiError('NotFound', 'no session of this node waits under this id')
  return {
    kind: 'connection',
    async take({ socket, head }) {
      if (head.length > 0) socket.unshift(head)
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${sessionProtocol}\r\n\r\n`)
      sessions.connect(node, id, socket)
    },
  }
}

/** A client that lists pods and watches them, over and over: what it sees is judged. */
import { administrator } from '../../api/identity.ts'
import { type ApiServers, simulatedApi, stream } from '../programs/api-transport.ts'
import type { Story } from '../story/story.ts'
import type { ProgramPlace } from '../world/wire.ts'

type Seen = {
  readonly type: string
  readonly object: {
    readonly metadata?: { readonly name?: string; readonly namespace?: string; readonly resourceVersion?: string }
  }
}

const path = '/api/v1/pods'

/** Never resolves. */
export async function watchPods(place: ProgramPlace, servers: ApiServers, story: Story): Promise<void> {
  const api = simulatedApi(place, servers, administrator)
  const { clock } = place.life
  let from: string | undefined

  const list = async () => {
    const { status, body } = await api.get(path)
    if (status !== 200) throw new Error(`status ${status}`)
    const version = (body as Seen['object']).metadata?.resourceVersion ?? ''
    story.record({ kind: 'listed', resource: 'pods', version: Number(version) })
    return version
  }
  const take = (piece: string) => {
    for (const line of piece.split('\n').filter((one) => one !== '')) {
      const { type, object } = JSON.parse(line) as Seen
      if (type === 'ERROR') {
        from = undefined
        return
      }
      const { name = '', namespace = '', resourceVersion = '' } = object.metadata ?? {}
      from = resourceVersion
      story.record({ kind: 'watched', resource: 'pods', namespace, name, version: Number(resourceVersion) })
    }
  }
  for (;;) {
    try {
      from ??= await list()
      const status = await stream(
        place,
        servers,
        { path: `${path}?watch=true&resourceVersion=${from}`, identity: administrator },
        take,
      )
      if (status === 410) from = undefined
    } catch {
      // The controller is away.
    }
    await clock.sleep(1_000)
  }
}

/** Publishes the names of the contents that this node holds. */
import { type ContentsMessage, mostHeldNames } from '../../../api/topics.ts'
import { type AnnouncedReport, announcedReport } from './announced-report.ts'

/** `held`: undefined while it is unknown. */
export function contentsReport(topic: string, held: () => readonly string[] | undefined): AnnouncedReport {
  return announcedReport(topic, {
    isRead: ({ contents = false }) => contents,
    body() {
      const names = held()
      if (names === undefined) return undefined
      const message: ContentsMessage = { names: names.slice(0, mostHeldNames) }
      return JSON.stringify(message)
    },
  })
}

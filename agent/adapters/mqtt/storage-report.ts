/** Publishes what this node reports of its volumes. */
import type { StorageMessage } from '../../../api/storage/volume-messages.ts'
import { type AnnouncedReport, announcedReport } from './announced-report.ts'

export interface StorageReporter extends AnnouncedReport {
  report(message: StorageMessage): void
}

export function storageReport(topic: string): StorageReporter {
  let body: string | undefined
  const announced = announcedReport(topic, { isRead: ({ volumes = false }) => volumes, body: () => body })
  return {
    ...announced,
    report(message) {
      body = JSON.stringify(message)
      announced.publish()
    },
  }
}

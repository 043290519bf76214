/** What each verb does with objects: one road in, a file for each kind of errand. */
import type { Answer } from './answers.ts'
import { changeObject } from './changing.ts'
import { createObject } from './creating.ts'
import { deleteCollection, deleteObject } from './deleting.ts'
import { getObject, listObjects, watchObjects } from './reading.ts'
import type { ResourceNeeds, ResourceRequest } from './resource-request.ts'

/** Throws the ApiError that the client shall be told. */
export async function resourceAnswer(request: ResourceRequest, needs: ResourceNeeds): Promise<Answer> {
  switch (request.route.verb) {
    case 'get':
      return getObject(request, needs)
    case 'list':
      return listObjects(request, needs)
    case 'watch':
      return watchObjects(request, needs)
    case 'create':
      return createObject(request, needs)
    case 'update':
    case 'patch':
      return changeObject(request, needs)
    case 'delete':
      return deleteObject(request, needs)
    case 'deletecollection':
      return deleteCollection(request, needs)
  }
}

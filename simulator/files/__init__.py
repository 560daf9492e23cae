"""Files that users give: unpacked within limits, XML without entities, tables read strictly."""
